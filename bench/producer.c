/* Writes argv[1] bytes to stdout, in the shape argv[2]: lines of 80 bytes, about 1 MiB a write, unless it says otherwise.
 *
 * All writes are of one buffer that is filled before the first, so that no reader waits for this program. Only the
 * first line differs from block to block: it carries the block's number, so that a block that is lost, repeated or
 * misplaced changes the hash of the whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 80, LINES = 13107, BLOCK = LINE * LINES };

static const char PLAIN[] = " compiling src/module.c with option --level 3..............";
static const char COLOURED[] = " \033[32mok\033[0m \033[1mmod\033[0m \033[33mwarn\033[0m \033[36mc\033[0m \033[31me\033[0m";
static const char CJK[] = " \346\274\242\345\255\227\344\273\256\345\220\215\344\272\244\343\201\230\343\202\212"
                          "\346\226\207\347\253\240\345\207\272\345\212\233\350\241\214\347\233\256\347\225\252";

static char block[BLOCK];

/* Puts a line of which the number is the only part that varies; its terminating NUL falls on the line feed's place. */
static void put_line(char *at, const char *word, unsigned long long number, const char *rest, char end)
{
    snprintf(at, LINE, "%s %012llu%s", word, number, rest);
    memset(at + strlen(at), '.', LINE - strlen(at));
    at[LINE - 1] = end;
}

static int put_out(const char *from, size_t size)
{
    while (size > 0) {
        ssize_t count = write(STDOUT_FILENO, from, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return 0;
        from += count;
        size -= (size_t)count;
    }
    return 1;
}

int main(int argc, char **argv)
{
    unsigned long long left = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const char *shape = argc > 2 ? argv[2] : "lines";
    const char *rest = strcmp(shape, "coloured") == 0 ? COLOURED : strcmp(shape, "cjk") == 0 ? CJK : PLAIN;
    char end = strcmp(shape, "single") == 0 ? '.' : '\n';
    size_t step = strcmp(shape, "chatty") == 0 ? LINE : BLOCK;

    for (int line = 0; line < LINES; line++)
        put_line(block + (size_t)line * LINE, "line", (unsigned long long)line, rest, end);
    for (unsigned long long number = 0; left > 0; number++) {
        size_t size = left < BLOCK ? (size_t)left : BLOCK;

        put_line(block, "part", number, rest, end);
        for (size_t done = 0; done < size; done += step)
            if (!put_out(block + done, size - done < step ? size - done : step))
                return 1;
        left -= size;
    }
    return 0;
}
