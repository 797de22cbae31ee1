  auto const ptr_[[ t.name ]] = static_cast<[[ c.stored(t.name) ]] const*>(params.[[ t.param ]])
                     + work.[[ t.param ]].sequence * params.[[ t.param ]]_[[ c.recipe.modes("o")[0] ]]
                     + work.[[ t.param ]].head * params.[[ t.param ]]_head;
