/* SPDX-License-Identifier: MIT */
#include "support/comma.h"

locale_t use_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8",
                                        "it_IT.UTF-8", "ru_RU.UTF-8", "pt_BR.UTF-8",
                                        "de_DE",       "fr_FR"};
    locale_t found = (locale_t)0;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && found == (locale_t)0; i++)
        found = newlocale(LC_NUMERIC_MASK, names[i], (locale_t)0);
    if (found == (locale_t)0) {
        print_message("no locale with a comma is installed\n");
        skip();
    }
    return uselocale(found);
}

void drop_comma(locale_t before)
{
    freelocale(uselocale(before));
}
