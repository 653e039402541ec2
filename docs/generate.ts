// Writes the generated pages: docs/KINDS.md from the schemas, docs/CLI.md and the help texts from the table of commands, the
// file tree of docs/ARCHITECTURE.md, and the example of an agent in deploy/. `npm run docs` runs it; tests compare the pages with what it makes.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { Kind } from '../src/api/kind.ts'
import { metadataSchema, wholeSchema } from '../src/api/metadata-schema.ts'
import type { Schema } from '../src/api/schema.ts'
import { askingOf, flagRow, helpOf, usageOf } from '../src/cli/help.ts'
import { commands } from '../src/cmd/commands.ts'
import { type Command, loaded } from '../src/host/command.ts'
import { kinds } from '../src/kinds/index.ts'
import { agentExample } from './agent-example.ts'
import { architecturePage } from './architecture-tree.ts'

export function kindsPage(): string {
  const isOurs = (kind: Kind) => kind.group === 'management.platform.sh'
  const all = kinds.filter(kind => kind.served)
  const served = [...all.filter(isOurs), ...all.filter(kind => !isOurs(kind))]
  const later = kinds.filter(kind => !kind.served)
  return [
    '# Kinds and their fields',
    'Made by `npm run docs` from the schemas in `src/kinds/`; do not edit. `kubectl explain <kind> --recursive` shows the same.',
    'Everything lives below `/kubernetes/management`. Any field may be left out unless it is marked required.',
    ...served.flatMap(kind => section(kind, '##')),
    ...(later.length ? ['## Internal, not served', ...later.flatMap(kind => section(kind, '###'))] : []),
    '## metadata',
    'The same for every kind.',
    table(metadataSchema, 'metadata'),
  ].join('\n\n')
}

function section(kind: Kind, heading: string): string[] {
  const isCreated = kind.verbs.includes('create')
  const facts = [
    `\`${kind.apiVersion}\`, \`${kind.plural}\`${kind.shortNames.map(name => ` or \`${name}\``).join('')}, ${kind.namespaced ? 'in a namespace' : 'without namespace'}.`,
    `Verbs: ${kind.verbs.join(', ')}.`,
    ...(kind.statusSubresource ? ['Has `/status`.'] : []),
    ...(kind.stored || !isCreated ? [] : ['Not stored: the answer to the create is all there is.']),
    ...fields(
      'Never shown',
      kind.hidden.filter(path => !isInternal(kind, path)),
    ),
    ...fields(
      kind.stored ? 'Shown once, in the answer to the write that sets it' : 'Not in the answer',
      kind.writeOnly,
    ),
    ...fields('Encrypted at rest', kind.sealed),
  ]
  const { apiVersion: _, kind: __, metadata: ___, ...parts } = wholeSchema(kind).properties ?? {}
  const isStruct = ([, schema]: [string, Schema]) => schema.properties !== undefined
  const tables = Object.entries(parts).filter(isStruct)
  const others = Object.entries(parts).filter(part => !isStruct(part))
  const sample = kind.served && isCreated ? [`\`\`\`yaml\n${stringify(kind.sample)}\`\`\``] : []
  return [
    `${heading} ${kind.kind}`,
    kind.description,
    ...sample,
    facts.join(' '),
    ...tables.flatMap(([part, schema]) => [`**${part}**`, table(schema, part)]),
    ...(others.length ? [table({ properties: Object.fromEntries(others) }, '')] : []),
  ]
}

const fields = (what: string, paths: readonly string[]) =>
  paths.length ? [`${what}: ${paths.map(path => `\`${path}\``).join(', ')}.`] : []

function isInternal(kind: Kind, path: string): boolean {
  const [part, ...names] = path.split('.')
  let schema = part === 'spec' ? kind.spec : kind.status
  for (const name of names) schema = schema?.properties?.[name]
  return schema?.['x-internal'] === true
}

function table(schema: Schema, path: string): string {
  return ['| field | type | meaning |', '|---|---|---|', ...rows(schema, path)].join('\n')
}

function rows(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    if (field['x-internal']) return []
    const at = path ? `${path}.${name}` : name
    const marks = [
      ...(schema.required?.includes(name) ? ['Required.'] : []),
      ...(field.deprecated && !field.description?.startsWith('Deprecated') ? ['Deprecated.'] : []),
      ...(field.default === undefined ? [] : [`Default \`${field.default}\`.`]),
      ...(field.minimum === undefined ? [] : [`At least ${field.minimum}.`]),
      ...(field.enum ? [`One of ${field.enum.map(one => `\`${one}\``).join(', ')}.`] : []),
    ]
    const meaning = [field.description ?? '', ...marks].filter(Boolean).join(' ')
    const row = `| \`${at}\` | ${typeOf(field)} | ${escaped(meaning)} |`
    const below = field.items?.properties ? rows(field.items, `${at}[]`) : rows(field, at)
    return [row, ...below]
  })
}

function typeOf(schema: Schema): string {
  const { items, additionalProperties: values } = schema
  if (schema.type === 'array') {
    const keys = schema['x-kubernetes-list-map-keys']
    const how = keys ? `, keyed by ${keys.join(' and ')}` : schema['x-kubernetes-list-type'] === 'set' ? ', a set' : ''
    return `list of ${items?.type ?? 'anything'}${how}`
  }
  if (values && typeof values === 'object')
    return `map of ${values.format === 'byte' ? 'base64' : (values.type ?? 'anything')}`
  return schema.format === 'date-time' ? 'time' : (schema.type ?? 'anything')
}

const escaped = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '\\<').replaceAll('*', '\\*')

const mark = '<!-- From here on made by'

export async function shownCommands(): Promise<Command[]> {
  return (await Promise.all(commands.map(loaded))).filter(({ hidden }) => !hidden)
}

/** The page with its hand-written beginning and everything below the mark made anew. */
export async function cliPage(page: string): Promise<string> {
  const end = page.indexOf('\n', page.indexOf(mark))
  const parts = (await shownCommands()).map(commandSection)
  return `${[page.slice(0, end === -1 ? undefined : end).trimEnd(), '## Every command', ...parts].join('\n\n')}\n`
}

function commandSection(command: Command): string {
  const { words, what, examples, flags, positionals = [], ownFlags, asksBefore } = command
  const rows = [...positionals.map(({ name, what: text }) => [name, text]), ...Object.entries(flags).map(flagRow)]
  const table = [
    '| argument | meaning |',
    '|---|---|',
    ...rows.map(([name, text]) => `| \`${name}\` | ${escaped(text ?? '')} |`),
  ]
  return [
    `### platform ${words.join(' ')}`,
    escaped(what),
    `\`${usageOf(command)}\``,
    ...(examples.length
      ? [examples.map(one => `- ${one.what ? `${escaped(one.what)}: ` : ''}\`${one.command}\``).join('\n')]
      : []),
    ...(ownFlags && rows.length > 12
      ? ['Its flags are the settings of [OPERATIONS.md](OPERATIONS.md).']
      : rows.length
        ? [table.join('\n')]
        : []),
    ...(asksBefore ? [askingOf(asksBefore)] : []),
  ].join('\n\n')
}

/** What `--help` prints, for all commands. */
export async function helpTexts(): Promise<string> {
  return (await shownCommands())
    .map(command => `$ platform ${command.words.join(' ')} --help\n${helpOf(command)}\n`)
    .join('\n')
}

if (import.meta.main) {
  const page = join(import.meta.dirname, 'CLI.md')
  writeFileSync(join(import.meta.dirname, 'KINDS.md'), `${kindsPage()}\n`)
  writeFileSync(page, await cliPage(readFileSync(page, 'utf8')))
  writeFileSync(join(import.meta.dirname, '../test/cli/help.txt'), await helpTexts())
  writeFileSync(join(import.meta.dirname, '../deploy/kubernetes/overlays/agent/agent.yaml'), agentExample())
  const architecture = join(import.meta.dirname, 'ARCHITECTURE.md')
  writeFileSync(architecture, architecturePage(readFileSync(architecture, 'utf8')))
}
