/* json.h - a string as JSON: what the runtime tells the harness is text of this kind. */
#ifndef LT_JSON_H
#define LT_JSON_H

#include <cstdio>
#include <string>

/* Bytes outside printable ASCII become \u00XX, one each. */
inline std::string json_quoted(const std::string &s)
{
    std::string r = "\"";
    char hex[8];

    for (unsigned char c : s) {
        if (c == '"' || c == '\\')
            r += '\\', r += char(c);
        else if (c < 0x20 || c >= 0x7f)
            snprintf(hex, sizeof hex, "\\u%04x", c), r += hex;
        else
            r += char(c);
    }
    return r + "\"";
}

#endif
