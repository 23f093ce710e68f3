/* SPDX-License-Identifier: MIT */
/* cmd_completion.c - tarn completion: tab completion in shells.
 *
 * The scripts of all shells ask the program itself what can come next: the words before the
 * cursor are its arguments, and it prints one completion per line. */
#include <stdio.h>
#include <string.h>

#include "help.h"

struct options {
    const char *shell;
    struct args_words words;
};

/* ---- Scripts ------------------------------------------------------------ */

/* A line ":files" or ":folders" means all of these. --option=value is three words to bash. */
static const char bash[] =
    "# bash completion for tarn, made by: tarn completion bash\n"
    "_tarn() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    [[ $cur == = ]] && cur=\n"
    "    mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]/#~\\//$HOME/}\" completion bash -- \\\n"
    "        \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "    case ${COMPREPLY[0]} in\n"
    "    :files) compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "    :folders) compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _tarn tarn\n";

static const char zsh[] =
    "#compdef tarn\n"
    "# zsh completion for tarn, made by: tarn completion zsh\n"
    "_tarn() {\n"
    "    local -a offered\n"
    "    offered=(\"${(@f)$(\"${(Q)words[1]/#~\\//$HOME/}\" completion zsh -- \\\n"
    "        \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    case $offered[1] in\n"
    "    :files) compset -P '-*='; _files ;;\n"
    "    :folders) compset -P '-*='; _files -/ ;;\n"
    "    ?*) _describe tarn offered ;;\n"
    "    esac\n"
    "}\n"
    "_tarn \"$@\"\n";

static const char fish[] =
    "# fish completion for tarn, made by: tarn completion fish\n"
    "function __tarn_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l offered ($words[1] completion fish -- $words[2..-1] \"$current\" 2>/dev/null)\n"
    "    switch \"$offered[1]\"\n"
    "        case :files\n"
    "            __fish_complete_path \"$current\"\n"
    "        case :folders\n"
    "            __fish_complete_directories \"$current\"\n"
    "        case '*'\n"
    "            printf '%s\\n' $offered\n"
    "    end\n"
    "end\n"
    "complete -c tarn -f -a '(__tarn_complete)'\n";

static const struct shell {
    tarn_table_row about;
    const char *script;
    const char *before_help; /* what is between a completion and its help; NULL: no help */
} shells[] = {
    {{"bash", "add to ~/.bashrc: source <(tarn completion bash)", NULL}, bash, NULL},
    {{"zsh", "save as _tarn in a folder of $fpath", NULL}, zsh, ":"},
    {{"fish", "add to ~/.config/fish/config.fish: tarn completion fish | source", NULL},
     fish,
     "\t"},
};

enum { SHELLS = sizeof shells / sizeof shells[0] };

static const tarn_table_row *shell_row(size_t index)
{
    return index < SHELLS ? &shells[index].about : NULL;
}

static const char *shell_name(size_t index)
{
    return index < SHELLS ? shells[index].about.name : NULL;
}

/* ---- Offers ------------------------------------------------------------- */

/* The word that is completed. */
struct cursor {
    const struct shell *shell;
    const char *begun; /* what is there of it */
    int glued;         /* bytes of "--option=" that the shell takes for a part of it */
    const struct command *command;
};

static void offer(const struct cursor *c, const char *dashes, const char *word, size_t length,
                  const char *help)
{
    char text[256];

    snprintf(text, sizeof text, "%.*s%s%.*s", c->glued, c->begun, dashes, (int)length, word);
    if (strncmp(text, c->begun, strlen(c->begun)) != 0)
        return;
    if (help && c->shell->before_help)
        printf("%s%s%s\n", text, c->shell->before_help, help);
    else
        printf("%s\n", text);
}

/* "f32|bf16" are words, "LO|HI" are not. */
static bool is_choice(const char *text)
{
    return strchr(text, '|') && !strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

/* Of options that take the same names wherever they are. */
static const struct args_table common[] = {
    {NULL, tarn_preset, "preset"},           {NULL, tarn_attention_kind, "attention"},
    {NULL, tarn_feature_map, "feature-map"}, {NULL, tarn_method, "method"},
    {NULL, tarn_optimizer, "optimizer"},     {0},
};

/* The table of the values of an option; NULL: there is none. */
static const struct args_table *find_table(const struct args_table *table, const char *option)
{
    for (; table && table->row; table++)
        if (table->option && strcmp(table->option, option) == 0)
            return table;
    return NULL;
}

static const struct args_table *table_of(const struct command *command, const char *option)
{
    const struct args_table *const own = find_table(command->tables, option);

    return own ? own : find_table(common, option);
}

/* The values of an option or operand: the names of a table, words, or files. */
static void offer_values(const struct cursor *c, const struct args_option *option)
{
    const struct args_table *const table = table_of(c->command, option->name);
    const char *text = args_is_operand(option) ? option->name : option->argument;

    for (size_t i = 0; table && table->row(i); i++)
        offer(c, "", table->row(i)->name, strlen(table->row(i)->name), table->row(i)->help);
    if (table)
        return;
    if (strcmp(text, "DIR") == 0)
        puts(":folders");
    if (words_have("FILE PATH MODEL OUT AUDIO RUN", text))
        puts(":files");
    while (is_choice(text) || *text == '|') {
        text += *text == '|';
        offer(c, "", text, strcspn(text, "|"), NULL);
        text += strcspn(text, "|");
    }
}

static void offer_commands(const struct cursor *c)
{
    for (size_t i = 0; c->command->rows[i]; i++) {
        const char *const word = command_word(c->command->rows[i]);

        offer(c, "", word, strlen(word), c->command->rows[i]->summary);
    }
    offer(c, "--", "help", 4, help_of_help.help);
}

static void offer_options(const struct cursor *c)
{
    for (const struct args_option *option = c->command->options; option->name; option++)
        if (!args_is_operand(option))
            offer(c, args_dashes(option), option->name, strlen(option->name), option->help);
    offer(c, "--", "help", 4, help_of_help.help);
}

/* ---- The line ----------------------------------------------------------- */

/* The command that the words name. */
static const struct command *find_command(const struct args_words *words)
{
    const struct command *command = &program;

    for (size_t i = 0; i + 1 < words->count; i++)
        for (size_t k = 0; command->rows && command->rows[k]; k++)
            if (strcmp(command_word(command->rows[k]), words->words[i]) == 0) {
                command = command->rows[k];
                break;
            }
    return command_table(command);
}

/* The option that a word names, if it takes a value; NULL: none. */
static const struct args_option *option_of(const struct command *command, const char *word)
{
    const char *const name = word + strspn(word, "-");

    for (const struct args_option *option = command->options; option && option->name; option++)
        if (*word == '-' && option->argument && strlen(option->name) == strcspn(name, "=") &&
            strncmp(option->name, name, strcspn(name, "=")) == 0)
            return option;
    return NULL;
}

/* The operand that comes after those that are there; NULL: none. */
static const struct args_option *next_operand(const struct command *command,
                                              const struct args_words *words)
{
    size_t before = 0;

    for (const char *at = command->name; (at = strchr(at, ' ')) != NULL; at++)
        before--; /* the name of the command is not an operand */
    for (size_t i = 0; i + 1 < words->count; i++)
        before +=
            words->words[i][0] != '-' && !(i > 0 && option_of(command, words->words[i - 1]));
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option) && (option->type == ARGS_OPERANDS || before-- == 0))
            return option;
    return NULL;
}

static void complete(const struct shell *shell, const struct args_words *words)
{
    struct cursor c = {
        .shell = shell,
        .begun = words->words[words->count - 1],
        .command = find_command(words),
    };
    const char *before = words->count > 1 ? words->words[words->count - 2] : "";

    if (strcmp(before, "=") == 0 && words->count > 2)
        before = words->words[words->count - 3];
    if (strcmp(c.begun, "=") == 0)
        c.begun = "";
    const struct args_option *option = option_of(c.command, before);

    if (!option && strchr(c.begun, '=') && (option = option_of(c.command, c.begun)) != NULL)
        c.glued = (int)strcspn(c.begun, "=") + 1;
    if (!option && !c.command->rows && *c.begun != '-')
        option = next_operand(c.command, words);
    if (option)
        offer_values(&c, option);
    else if (c.command->rows)
        offer_commands(&c);
    else if (*c.begun == '-')
        offer_options(&c);
}

static void run(void *values)
{
    const struct options *const o = values;
    const struct shell *shell = shells;

    while (shell < shells + SHELLS && strcmp(shell->about.name, o->shell) != 0)
        shell++;
    if (shell == shells + SHELLS)
        refuse_name("shell", o->shell, shell_name);
    if (o->words.count > 0)
        complete(shell, &o->words);
    else
        fputs(shell->script, stdout);
}

const struct command cmd_completion = {
    .name = "tarn completion",
    .summary = "print a completion script for bash, zsh or fish",
    .help = "Print a script that completes commands, options and names with the Tab key. If "
            "tarn is installed, the shells find theirs without this.",
    .options =
        (const struct args_option[]){
            {"SHELL", NULL, ARGS_OPERAND, NULL, AT(shell), 1, 0, "bash, zsh or fish"},
            {"WORD", NULL, ARGS_OPERANDS, NULL, AT(words), 0, 0,
             "words of a command line, after --: print the completions of the last one, as the "
             "scripts ask for them"},
            {0},
        },
    .tables = (const struct args_table[]){{"shells", shell_row, "SHELL"}, {0}},
    .examples = "source <(tarn completion bash)\n"
                "tarn completion zsh >~/.zfunc/_tarn\n",
    .values = sizeof(struct options),
    .run = run,
};
