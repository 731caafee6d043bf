/**
 * `headroom completion SHELL`: scripts generated from the commands themselves, so that they always match
 * `--help`.
 */
import type { Command } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** What `headroom names KIND` lists. */
export const NAME_KINDS = ['tasks', 'nodes', 'groups'] as const
export type NameKind = (typeof NAME_KINDS)[number]

/** A position on the command line and its possible next words. */
interface Place {
  /** Example: `headroom node list`. */
  readonly path: string
  readonly subcommands: readonly Named[]
  readonly options: readonly OptionShape[]
  /** Its arguments are names of the cluster; null: they are not. */
  readonly names: NameKind | null
}

interface Named {
  readonly name: string
  readonly description: string
}

interface OptionShape {
  /** Example: `-o`, `--output`. */
  readonly flags: readonly string[]
  readonly takesValue: boolean
  readonly choices: readonly string[]
  /** Its value is a name of the cluster; null: it is not. */
  readonly names: NameKind | null
  readonly description: string
}

/** Arguments and options are named after what they take: `<task...>`, `--group <group>`. */
function kindOf(placeholder: string): NameKind | null {
  return (
    NAME_KINDS.find((kind) =>
      new RegExp(`^[<[]?${kind.slice(0, -1)}(\\.\\.\\.)?[>\\]]?$`).test(placeholder),
    ) ?? null
  )
}

export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program)
  switch (shell) {
    case 'bash':
      return bashScript(places)
    case 'zsh':
      return zshScript(places)
    case 'fish':
      return fishScript(places)
  }
}

function placesOf(command: Command, path = command.name()): readonly Place[] {
  const argumentChoices = command.registeredArguments.flatMap(({ argChoices, description }) =>
    (argChoices ?? []).map((name): Named => ({ name, description })),
  )
  const place: Place = {
    path,
    subcommands: [
      ...command.commands.map((child): Named => ({ name: child.name(), description: child.description() })),
      ...argumentChoices,
    ],
    options: [
      ...command.options.map(
        ({ flags, short, long, required, optional, argChoices, description }): OptionShape => ({
          flags: [short, long].filter((flag) => flag !== undefined),
          takesValue: required || optional,
          choices: argChoices ?? [],
          names: kindOf(flags.split(' ').at(-1) ?? ''),
          description,
        }),
      ),
      {
        flags: ['-h', '--help'],
        takesValue: false,
        choices: [],
        names: null,
        description: 'display help for command',
      },
    ],
    names:
      command.registeredArguments.map((argument) => kindOf(argument.name())).find((kind) => kind !== null) ??
      null,
  }
  return [place, ...command.commands.flatMap((child) => placesOf(child, `${path} ${child.name()}`))]
}

/** Quotes a word of a script for bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function candidatesAt({ subcommands, options }: Place): string {
  return [...subcommands.map(({ name }) => name), ...options.flatMap(({ flags }) => flags)].join(' ')
}

/** Returns `'headroom node'|'headroom node list'`: every path except the first. */
function pathPattern(places: readonly Place[]): string {
  return places
    .slice(1)
    .map(({ path }) => quoted(path))
    .join(' | ')
}

/** The statement that sets the kind of names, in bash and zsh. */
function namesSet(names: NameKind | null): string {
  return names === null ? '' : ` names=${names};`
}

function valueCases(places: readonly Place[], body: (choices: readonly string[]) => string): string {
  return places
    .flatMap(({ path, options }) =>
      options
        .filter(({ takesValue }) => takesValue)
        .map(
          ({ flags, choices, names }) =>
            `    ${flags.map((flag) => quoted(`${path} ${flag}`)).join(' | ')})${namesSet(names)} ` +
            `${body(choices)} ;;\n`,
        ),
    )
    .join('')
}

function bashScript(places: readonly Place[]): string {
  const words = places
    .map(
      (place) =>
        `    ${quoted(place.path)})${namesSet(place.names)} words=${quoted(candidatesAt(place))} ;;\n`,
    )
    .join('')
  const values = valueCases(places, (choices) => `words=${quoted(choices.join(' '))}; isValue=1`)
  return `# bash completion of headroom: source <(headroom completion bash)
_headroom() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  local at=headroom words='' isValue='' names='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    # What follows -- is the command line of another program.
    [[ "\${COMP_WORDS[i]}" == -- ]] && return
    case "$at \${COMP_WORDS[i]}" in
    ${pathPattern(places)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $before" in
${values}  esac
  if [[ -z "$isValue" ]]; then
    case "$at" in
${words}    esac
  fi
  [[ -n "$names" && "$current" != -* ]] && words="$words $(headroom names "$names" 2>/dev/null)"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _headroom headroom
`
}

function zshScript(places: readonly Place[]): string {
  const words = places
    .map(
      (place) =>
        `    ${quoted(place.path)})${namesSet(place.names)} ` +
        `candidates=(${candidatesAt(place).split(' ').map(quoted).join(' ')}) ;;\n`,
    )
    .join('')
  const values = valueCases(places, (choices) => `candidates=(${choices.map(quoted).join(' ')}); is_value=1`)
  return `#compdef headroom
# zsh completion of headroom: source <(headroom completion zsh), after compinit
_headroom() {
  local at=headroom is_value='' names='' i
  local -a candidates
  for ((i = 2; i < CURRENT; i++)); do
    if [[ "$words[i]" == -- ]]; then
      _files
      return
    fi
    case "$at $words[i]" in
    ${pathPattern(places)}) at="$at $words[i]" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
${values}  esac
  if [[ -z "$is_value" ]]; then
    case "$at" in
${words}    esac
  fi
  if [[ -n "$names" && "$words[CURRENT]" != -* ]]; then
    candidates+=(\${(f)"$(headroom names $names 2>/dev/null)"})
  fi
  if (( \${#candidates} )); then
    compadd -- $candidates
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _headroom ]]; then
  _headroom "$@"
else
  compdef _headroom headroom
fi
`
}

/** In fish, single quotes know the escapes \\' and \\\\. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap((place) => {
    const here = `complete -c headroom -n ${fishQuoted(`__headroom_at ${place.path}`)}`
    return [
      ...place.subcommands.map(
        ({ name, description }) => `${here} -f -a ${fishQuoted(name)} -d ${fishQuoted(description)}`,
      ),
      ...(place.names === null ? [] : [`${here} -f -a '(headroom names ${place.names} 2>/dev/null)'`]),
      ...place.options.map((option) => `${here}${fishOption(option)} -d ${fishQuoted(option.description)}`),
    ]
  })
  return `# fish completion of headroom: headroom completion fish | source
function __headroom_at
    set -l at headroom
    set -l typed (commandline -opc)
    set -e typed[1]
    for word in $typed
        test "$word" = --; and return 1
        switch "$at $word"
            case ${places
              .slice(1)
              .map(({ path }) => fishQuoted(path))
              .join(' ')}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
${lines.join('\n')}
`
}

function fishOption({ flags, takesValue, choices, names: kind }: OptionShape): string {
  const names = flags
    .map((flag) => (flag.startsWith('--') ? ` -l ${flag.slice(2)}` : ` -s ${flag.slice(1)}`))
    .join('')
  if (kind !== null) return `${names} -x -a '(headroom names ${kind} 2>/dev/null)'`
  const values = choices.length > 0 ? ` -x -a ${fishQuoted(choices.join(' '))}` : ''
  return `${names}${takesValue && choices.length === 0 ? ' -r' : ''}${values}`
}
