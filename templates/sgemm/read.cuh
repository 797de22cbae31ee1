{% if t.lies_along_n() %}{% if t.is_guarded() %}      if ([[ t.guard ]] && whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ name ]]>{}, tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      } else if ([[ t.guard ]]) {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }{% else %}      if (whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ name ]]>{}, tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      } else {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }{% endif %}{% else %}      if ([[ t.is_read() ]]) {
        copy_all_if(inside(n), tDg[[ name ]](at(n)), tDr[[ read ]](_, n));
      }{% endif %}
