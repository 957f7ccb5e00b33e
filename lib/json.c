// SPDX-License-Identifier: MIT
/*
 * json.c: whether a text is JSON (RFC 8259) with an object at the top, which is
 * what a file of settings has to be. Nothing is built from it. Owns nothing and
 * takes no lock. Nesting is limited to 10 levels of objects and 10 of arrays, as
 * the product documents.
 */
#include "internal.h"

#include <string.h>

#define DEEPEST 10

struct text {
	const char *at;
	const char *end;
	int objects;
	int arrays;
};

static bool value(struct text *text);

static void space(struct text *text)
{
	while (text->at < text->end && strchr(" \t\r\n", *text->at) &&
	       *text->at)
		text->at++;
}

static bool take(struct text *text, char byte)
{
	if (text->at == text->end || *text->at != byte)
		return false;
	text->at++;
	return true;
}

/* After white space. */
static bool token(struct text *text, char byte)
{
	space(text);
	return take(text, byte);
}

static bool word(struct text *text, const char *expected)
{
	size_t length = strlen(expected);

	if ((size_t)(text->end - text->at) < length ||
	    memcmp(text->at, expected, length))
		return false;
	text->at += length;
	return true;
}

static bool is_digit(const struct text *text)
{
	return text->at < text->end && *text->at >= '0' && *text->at <= '9';
}

static bool digits(struct text *text)
{
	if (!is_digit(text))
		return false;
	while (is_digit(text))
		text->at++;
	return true;
}

static bool number(struct text *text)
{
	take(text, '-');
	if (!take(text, '0') && !digits(text))
		return false;
	if (take(text, '.') && !digits(text))
		return false;
	if (take(text, 'e') || take(text, 'E')) {
		if (!take(text, '+'))
			take(text, '-');
		return digits(text);
	}
	return true;
}

static bool escape(struct text *text)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	int i;

	if (text->at == text->end || !*text->at ||
	    !strchr("\"\\/bfnrtu", *text->at))
		return false;
	if (*text->at++ != 'u')
		return true;
	for (i = 0; i < 4; i++, text->at++)
		if (text->at == text->end || !*text->at ||
		    !strchr(hex, *text->at))
			return false;
	return true;
}

static bool string(struct text *text)
{
	if (!take(text, '"'))
		return false;
	while (text->at < text->end) {
		unsigned char byte = (unsigned char)*text->at++;

		if (byte == '"')
			return true;
		if (byte < ' ' || (byte == '\\' && !escape(text)))
			return false;
	}
	return false;
}

static bool members(struct text *text)
{
	if (token(text, '}'))
		return true;
	do {
		space(text);
		if (!string(text) || !token(text, ':') || !value(text))
			return false;
	} while (token(text, ','));
	return token(text, '}');
}

static bool elements(struct text *text)
{
	if (token(text, ']'))
		return true;
	do {
		if (!value(text))
			return false;
	} while (token(text, ','));
	return token(text, ']');
}

static bool object(struct text *text)
{
	bool ok;

	if (!take(text, '{') || ++text->objects > DEEPEST)
		return false;
	ok = members(text);
	text->objects--;
	return ok;
}

static bool array(struct text *text)
{
	bool ok;

	if (!take(text, '[') || ++text->arrays > DEEPEST)
		return false;
	ok = elements(text);
	text->arrays--;
	return ok;
}

/* Recursion ends with the limits of nesting. */
static bool value(struct text *text)
{
	space(text);
	if (text->at == text->end)
		return false;
	switch (*text->at) {
	case '{':
		return object(text);
	case '[':
		return array(text);
	case '"':
		return string(text);
	case 't':
		return word(text, "true");
	case 'f':
		return word(text, "false");
	case 'n':
		return word(text, "null");
	default:
		return number(text);
	}
}

bool aclmem_json_valid(const char *text, size_t length)
{
	struct text rest = { .at = text, .end = text + length };

	space(&rest);
	if (!object(&rest))
		return false;
	space(&rest);
	return rest.at == rest.end;
}
