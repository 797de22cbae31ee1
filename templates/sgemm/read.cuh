{% match t.reading() %}
{%- when EpilogueRead::Vectors %}      if (whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ name ]]>{}, tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      } else {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }
{%- when EpilogueRead::GuardedVectors %}      if ([[ t.guard ]] && whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ name ]]>{}, tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      } else if ([[ t.guard ]]) {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }
{%- when EpilogueRead::Elements %}      if ([[ t.is_read() ]]) {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }
{%- endmatch %}
