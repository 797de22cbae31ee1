  auto const multiply_k = [&] {
    keys.full[at.k.stage].wait(at.k.phase);
    turns.take();
    scores_mma.accumulate_ = GMMA::ScaleOut::Zero;
    issue(scores_mma, tSrQ, tSrK(_,_,_,at.k.stage), tSrS);
  };
  auto const multiply_v = [&] {
    values.full[at.v.stage].wait(at.v.phase);
    warpgroup_fence_operand(tOrP);
    issue(output_mma, tOrP, tOrV(_,_,_,at.v.stage), tOrO);
  };
  // Scores that have arrived become weights.
  auto const weigh = [&](int i, auto masked) {
    warpgroup_fence_operand(tSrS);
    release(keys.empty[at.k.stage]);
    release(queries.empty[at.q.stage], !lends && i + 1 == own.count);
    at.k.advance();
    if (params.scale <= 0) {
      // Maxima are those of scaled scores: the sign of the scale, or 0, is the scores'.
      CUTE_UNROLL
      for (int j = 0; j < size(tSrS); ++j) {
        tSrS(j) = params.scale < 0 ? -tSrS(j) : 0 * tSrS(j);
      }
    }
    scoring.apply(params, work, rows_s, rows_c, own.key(i));
    if constexpr (decltype(masked)::value) {
      own.hide(rows_s, rows_c, i);
    }
    softmax.step(rows_s, scoring.scale);
  };
  auto const end_v = [&] {
    warpgroup_wait<0>();
    warpgroup_fence_operand(tOrO);
    warpgroup_fence_operand(tOrP);
    release(values.empty[at.v.stage]);
    at.v.advance();
  };
  auto const clear_first = [&](int i) {
    if constexpr ([[ c.shares_steps() ]]) {
      if (i == 0) {
        values.full[at.v.stage].wait(at.v.phase);
        clear_tail(all, work.len_k, sV(_,_,at.v.stage));
      }
    }
  };
  // Stages that this warpgroup does not read.
{%- if c.emptied().is_some() %}
  auto const leave = [&](int, int end) {
    CUTE_NO_UNROLL
    while (walk.after < end) {
      int const i = walk.next();
{%- else %}
  auto const leave = [&](int first, int end) {
    CUTE_NO_UNROLL
    for (int i = first; i < end; ++i) {
{%- endif %}
      keys.full[at.k.stage].wait(at.k.phase);
      turns.take();
      turns.pass();
      release(keys.empty[at.k.stage]);
      at.k.advance();
      values.full[at.v.stage].wait(at.v.phase);
      clear_first(i);
      release(values.empty[at.v.stage]);
      at.v.advance();
    }
  };
  int const skipped = own.count > 0 ? all.begin + all.count - own.begin - own.count : all.count;
  leave(0, skipped);
  if (own.count > 0) {
    multiply_k();
    turns.pass();
    warpgroup_wait<0>();
    weigh(0, true_type{});
    round_all(tSrS, tOrP);
    clear_first(skipped);
    // Inlined: MMAs of a call are serialized.
{%- if c.emptied().is_some() %}
    walk.next();
    auto const until = [&](int end, auto masked) __attribute__((always_inline)) {
      CUTE_NO_UNROLL
      while (walk.after < skipped + end) {
        int const i = walk.next() - skipped;
{%- else %}
    int i = 1;
    auto const until = [&](int end, auto masked) __attribute__((always_inline)) {
      CUTE_NO_UNROLL
      for (; i < end; ++i) {
{%- endif %}
        multiply_k();
        multiply_v();
        turns.pass();
        warpgroup_wait<1>();  // S of this step; P @ V of the step before goes on
        weigh(i, masked);
        end_v();
        round_all(tSrS, tOrP);
        softmax.rescale(by_rows(tOrO));
      }
    };
{%- if c.emptied().is_some() %}
    // One loop: several are too long to be inlined, and MMAs of a call are serialized.
    until(own.count, bool_constant<Mask::diagonal>{});
{%- else %}
    // Loops of their own: a branch between MMAs costs 5 % of causal heads.
    if constexpr (Mask::diagonal) {
      until(own.whole, _1{});
    }
    until(own.left, _0{});
    if constexpr (Mask::window) {
      until(own.count, _1{});
    }
{%- endif %}
    multiply_v();
    end_v();
  }
  leave(skipped + own.count, all.count);
