/* Writes argv[1] bytes to stdout: lines of 80 bytes, about 1 MiB a write.
 *
 * All writes are of one buffer that is filled before the first, so that no reader waits for this program. Only the
 * first line differs from write to write: it carries the write's number, so that a block that is lost, repeated or
 * misplaced changes the hash of the whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 80, LINES = 13107, BLOCK = LINE * LINES };

static char block[BLOCK];

/* Puts a line of which the number is the only part that varies; its terminating NUL falls on the line feed's place. */
static void put_line(char *at, const char *word, unsigned long long number)
{
    snprintf(at, LINE, "%s %012llu compiling src/module.c with option --level 3", word, number);
    memset(at + strlen(at), '.', LINE - strlen(at));
    at[LINE - 1] = '\n';
}

int main(int argc, char **argv)
{
    unsigned long long left = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

    for (int line = 0; line < LINES; line++)
        put_line(block + (size_t)line * LINE, "line", (unsigned long long)line);
    for (unsigned long long number = 0; left > 0; number++) {
        size_t size = left < BLOCK ? (size_t)left : BLOCK;
        size_t done = 0;

        put_line(block, "part", number);
        while (done < size) {
            ssize_t count = write(STDOUT_FILENO, block + done, size - done);
            if (count < 0 && errno == EINTR)
                continue;
            if (count <= 0)
                return 1;
            done += (size_t)count;
        }
        left -= size;
    }
    return 0;
}
