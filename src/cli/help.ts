// Formats `--help` from command records: examples first, then flags.

import type { Command, Flag } from '../host/command.ts'

const nameOf = ({ words }: Command) => words.join(' ')

export function usageOf(command: Command): string {
  const { positionals = [], flags } = command
  return [
    `platform ${nameOf(command)}`,
    ...positionals.map(({ name, optional, many }) => (optional ? `[${name}]` : name) + (many ? '…' : '')),
    ...(Object.keys(flags).length ? ['[flags]'] : []),
  ].join(' ')
}

export function helpOf(command: Command): string {
  const { what, examples, flags, positionals = [], asksBefore } = command
  return [
    what,
    ...(examples.length ? ['', 'Examples:', ...examples.flatMap(one => [`  # ${one.what}`, `  ${one.command}`])] : []),
    '',
    'Usage:',
    `  ${usageOf(command)}`,
    ...columns(positionals.map(({ name, what }) => [name, what])),
    ...(Object.keys(flags).length ? ['', 'Flags:', ...columns(Object.entries(flags).map(flagRow))] : []),
    ...(asksBefore ? ['', askingOf(asksBefore)] : []),
  ].join('\n')
}

export const askingOf = (asksBefore: string) =>
  `Asks for confirmation before it ${asksBefore}. --yes skips the question; required without a terminal.`

/** Lists the commands that start with these words, or all commands if there are none. */
export function overviewOf(commands: readonly Command[], words: readonly string[]): string {
  const listed = commands.filter(command => !command.hidden && words.every((word, at) => command.words[at] === word))
  return [
    'Usage:',
    ...columns(listed.map(command => [`platform ${nameOf(command)}`, command.what])),
    '',
    `platform ${[...words, 'COMMAND'].join(' ')} --help shows examples and flags.`,
  ].join('\n')
}

export function flagRow([name, flag]: [string, Flag]): [string, string] {
  const short = flag.short ? `-${flag.short}, ` : ''
  if (flag.type === 'switch') return [`${short}--${name}`, flag.what]
  const notes = [
    flag.choices ? `one of ${flag.choices.join(', ')}` : '',
    flag.default === undefined ? '' : `default ${flag.default}`,
    flag.variable === undefined ? '' : `or ${flag.variable}`,
    flag.required ? 'required' : '',
    flag.type === 'list' ? 'may be repeated' : '',
  ].filter(Boolean)
  return [`${short}--${name} ${flag.value}`, notes.length ? `${flag.what} (${notes.join('; ')})` : flag.what]
}

const widest = 34

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.min(widest, Math.max(0, ...rows.map(([left]) => left.length)))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
