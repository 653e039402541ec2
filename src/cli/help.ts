// Formats `--help` from command records: examples first, then flags.

import type { Command, Example, Flag } from '../host/command.ts'

const nameOf = ({ words }: Command) => words.join(' ')

export function usageOf(command: Command): string {
  const { positionals = [], flags } = command
  const shown = positionals.map(({ name, optional, many }) => (optional ? `[${name}]` : name) + (many ? '…' : ''))
  // After -- everything belongs to the program that the command runs.
  const [before, after] = [shown.filter(one => !one.startsWith('--')), shown.filter(one => one.startsWith('--'))]
  const own = Object.keys(flags).length ? ['[flags]'] : []
  return [`platform ${nameOf(command)}`, ...before, ...own, ...after].join(' ')
}

export function helpOf(command: Command): string {
  const { what, examples, flags, positionals = [], asksBefore } = command
  return [
    what,
    ...(examples.length ? ['', 'Examples:', ...examples.flatMap(exampleLines)] : []),
    '',
    'Usage:',
    `  ${usageOf(command)}`,
    ...columns(positionals.map(({ name, what }) => [name, what])),
    ...(Object.keys(flags).length ? ['', 'Flags:', ...columns(Object.entries(flags).map(flagRow))] : []),
    ...(asksBefore ? ['', askingOf(asksBefore)] : []),
  ].join('\n')
}

const exampleLines = ({ what, command }: Example) => [...(what ? [`  # ${what}`] : []), `  ${command}`]

export const askingOf = (asksBefore: string) =>
  `Asks for confirmation before it ${asksBefore}. --yes skips the question; required without a terminal.`

/** The headings of the overview, in its order. The table of commands names one for each command. */
const subjects = [
  'Sign-in and contexts',
  'Global secrets and project secrets',
  'Teams',
  'Users',
  'Access keys and tokens',
  'Connected clusters',
  'Permissions',
  'Objects of any kind',
  'Virtual clusters',
  'Server',
  'This program',
]

export type Listed = { readonly command: Command; readonly subject?: string | undefined }

/** Lists the commands that start with these words, or all commands by subject if there are none. */
export function overviewOf(all: readonly Listed[], words: readonly string[]): string {
  const listed = all.filter(({ command }) => !command.hidden && words.every((word, at) => command.words[at] === word))
  const lines = (some: readonly Listed[]) =>
    columns(some.map(({ command }) => [`platform ${nameOf(command)}`, command.what]))
  return [
    'Usage:',
    ...(words.length
      ? lines(listed)
      : [
          '  platform COMMAND',
          ...subjects.flatMap(subject => ['', `${subject}:`, ...lines(listed.filter(one => one.subject === subject))]),
        ]),
    '',
    `platform ${[...words, 'COMMAND'].join(' ')} --help shows examples and flags.`,
  ].join('\n')
}

export function flagRow([name, flag]: [string, Flag]): [string, string] {
  const short = flag.short ? `-${flag.short}, ` : ''
  if (flag.type === 'switch') return [`${short}--${name}`, flag.what]
  const notes = [
    choicesOf(flag.value, flag.choices),
    flag.default === undefined ? '' : `default ${flag.default}`,
    flag.variable === undefined ? '' : `or ${flag.variable}`,
    flag.required ? 'required' : '',
    flag.type === 'list' ? 'may be repeated' : '',
  ].filter(Boolean)
  return [`${short}--${name} ${flag.value}`, notes.length ? `${flag.what} (${notes.join('; ')})` : flag.what]
}

/** Nothing for a flag such as `--dry-run server`, which already shows its only choice. */
function choicesOf(value: string, choices: readonly string[] = []): string {
  if (choices.length === 1) return choices[0] === value ? '' : `only ${choices[0]}`
  return choices.length ? `one of ${choices.join(', ')}` : ''
}

const widest = 34

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.min(widest, Math.max(0, ...rows.map(([left]) => left.length)))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
