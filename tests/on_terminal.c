/* SPDX-License-Identifier: MIT */
/* on_terminal.c - on_terminal COLUMNS COMMAND...: runs a command on a terminal of its own, so
 * many columns wide (0: of unknown width), and copies what it writes there, byte for byte, to
 * standard output. Exits as the command does. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int fail(const char *what)
{
    perror(what);
    return 125;
}

/* A newline stays one: no carriage return is added. */
static void set_up(int terminal, const char *columns)
{
    const struct winsize size = {.ws_col = (unsigned short)atoi(columns), .ws_row = 24};
    struct termios modes;

    tcgetattr(terminal, &modes);
    modes.c_oflag &= ~(tcflag_t)OPOST;
    tcsetattr(terminal, TCSANOW, &modes);
    ioctl(terminal, TIOCSWINSZ, &size);
}

static int run(const char *name, char **argv)
{
    setsid();
    const int terminal = open(name, O_RDWR);

    if (terminal < 0)
        return fail(name);
    set_up(terminal, argv[1]);
    for (int i = 0; i < 3; i++)
        dup2(terminal, i);
    execvp(argv[2], argv + 2);
    return fail(argv[2]);
}

int main(int argc, char **argv)
{
    const int control = posix_openpt(O_RDWR | O_NOCTTY);
    char bytes[4096];
    ssize_t got;
    int status = 0;

    if (argc < 3 || control < 0 || grantpt(control) != 0 || unlockpt(control) != 0)
        return fail("on_terminal COLUMNS COMMAND...");
    const pid_t child = fork();

    if (child < 0)
        return fail("fork");
    if (child == 0)
        _exit(run(ptsname(control), argv));
    /* Once the command has ended, reading fails. */
    while ((got = read(control, bytes, sizeof bytes)) > 0)
        fwrite(bytes, 1, (size_t)got, stdout);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
