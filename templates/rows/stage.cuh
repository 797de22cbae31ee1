
  // The row waits in shared memory: each thread copies what it reads later, so that no other thread has to wait for it.
  extern __shared__ __align__(16) unsigned char smem[];
{%- for t in self.of(Kind::Staged) %}
  auto const ptr_s[[ t.name ]] = reinterpret_cast<Element[[ t.name ]]*>(smem + [[ t.offset ]]);
  Tensor s[[ t.name ]] = make_tensor(make_smem_ptr(ptr_s[[ t.name ]]), typename Walk::Smem[[ t.name ]]{});  // (ROWS,COLUMNS,TILES)
  Tensor w[[ t.name ]] = addressed(thr_[[ t.name ]].partition_D(s[[ t.name ]]));  // (CPY,CPY_M,CHUNKS,TILES)
{%- endfor %}
  for (int i = 0; i < tiles; ++i) {
    [[ "[[maybe_unused]]" ]] int const tile = rank * RowTiles + i;
{%- for t in self.of(Kind::Staged) %}
    move_all<Walk, typename Walk::Stage[[ t.name ]]>(inside_of(tile), t[[ t.name ]](_, _, _, tile), w[[ t.name ]](_, _, _, i));
{%- endfor %}
    cp_async_fence();
  }
