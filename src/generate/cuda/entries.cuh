// What the compiler tells of a function: for each parameter the size, the alignment and the kind of its type, and of what a pointer
// points to.
namespace cutemplate_entries {

template <class T> struct Kind { static constexpr int value = __is_enum(T) ? 1 : 0; };
#define CUTEMPLATE_KIND(T, number) template <> struct Kind<T> { static constexpr int value = number; };
CUTEMPLATE_KIND(bool, 1) CUTEMPLATE_KIND(char, 1) CUTEMPLATE_KIND(signed char, 1) CUTEMPLATE_KIND(unsigned char, 1)
CUTEMPLATE_KIND(short, 1) CUTEMPLATE_KIND(unsigned short, 1) CUTEMPLATE_KIND(int, 1) CUTEMPLATE_KIND(unsigned, 1)
CUTEMPLATE_KIND(long, 1) CUTEMPLATE_KIND(unsigned long, 1) CUTEMPLATE_KIND(long long, 1) CUTEMPLATE_KIND(unsigned long long, 1)
CUTEMPLATE_KIND(float, 2) CUTEMPLATE_KIND(double, 2)
#undef CUTEMPLATE_KIND
template <class T> struct Kind<T*> { static constexpr int value = 3; };
template <class T> struct Kind<T const> : Kind<T> {};

template <class T> struct Pointee { static constexpr int size = 0, align = 0, constant = 0; };
template <class T> struct Pointee<T*> { static constexpr int size = sizeof(T), align = alignof(T), constant = 0; };
template <class T> struct Pointee<T const*> { static constexpr int size = sizeof(T), align = alignof(T), constant = 1; };
template <> struct Pointee<void*> { static constexpr int size = 0, align = 1, constant = 0; };
template <> struct Pointee<void const*> { static constexpr int size = 0, align = 1, constant = 1; };
template <class T> struct Pointee<T* const> : Pointee<T*> {};

template <class T>
struct Facts {
  int size = sizeof(T), align = alignof(T), kind = Kind<T>::value;
  int to_size = Pointee<T>::size, to_align = Pointee<T>::align, constant = Pointee<T>::constant;
};

template <class... T>
constexpr char const* types()
{
#if defined(_MSC_VER)
  return __FUNCSIG__;
#else
  return __PRETTY_FUNCTION__;
#endif
}

template <int N> struct Text { char letter[N]; };

template <class... T>
constexpr auto text()
{
  constexpr char const* from = types<T...>();
  constexpr int size = [](char const* of) { int n = 0; while (of[n]) { ++n; } return n + 1; }(from);
  Text<size> to{};
  for (int i = 0; i < size; ++i) { to.letter[i] = from[i]; }
  return to;
}

template <int N, class... T> struct At { using type = void; };
template <int N, class T, class... Rest> struct At<N, T, Rest...> : At<N - 1, Rest...> {};
template <class T, class... Rest> struct At<0, T, Rest...> { using type = T; };

template <class... T> struct All;
template <class T, class... Rest> struct All<T, Rest...> { Facts<T> first; All<Rest...> rest; };
template <> struct All<> { int end = -1; };

template <class... T> struct Counted { int count = sizeof...(T); All<T...> all; };

template <class F> struct Of;
template <class... T>
struct Of<void (*)(T...)> {
  template <int N> using Param = typename At<N, T...>::type;
  static constexpr auto facts() { return Counted<T...>{}; }
  static constexpr auto types() { return text<T...>(); }
};

template <class T> struct Field { int offset; Facts<T> facts; Text<sizeof(text<T>())> type; };
template <class S, class T> constexpr Field<T> field(unsigned long long offset) { return {int(offset), Facts<T>{}, text<T>()}; }

}  // namespace cutemplate_entries
