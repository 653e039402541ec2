// Shell completion: prints candidates for commands, flags, values and live object names, and the scripts that call it.

import { isObject } from '../api/object.ts'
import { decodeYaml } from '../api/yaml-codec.ts'
import { listAll } from '../client/list-watch.ts'
import { type Command, defineCommand, type Flag, type Io, loaded, type Row, UsageError } from '../host/command.ts'
import { readTokens } from '../host/read-flags.ts'
import { quoted } from '../host/sanitize.ts'
import { readContexts } from './login/contexts.ts'
import { kubeconfigPath } from './login/kubeconfig-file.ts'
import { anyKind, kindWords } from './resolve-kind.ts'
import { namespaceFor } from './resolve-namespace.ts'
import { openSession } from './session.ts'

const maxCandidates = 200
/** The value of a flag --context that means a context of a kubeconfig. */
const kubeContext = 'KUBECONTEXT'
const otherValues = new Set([kubeContext, 'PROJECT=NAMESPACE,…'])

/** The completion scripts run this hidden command. A failed completion prints nothing, because it would garble the prompt. */
export const completeOf = (rows: () => readonly Row[]): Command =>
  defineCommand({
    words: ['__complete'],
    what: 'Print completion candidates.',
    examples: [],
    flags: {},
    ownFlags: true,
    hidden: true,
    run: async ({ args }, io) => {
      const words = args[0] === '--' ? args.slice(1) : args
      const found = await candidates(rows(), words, io).catch(() => [])
      for (const one of found) io.out(`${one}\n`)
      return 0
    },
  })

async function candidates(rows: readonly Row[], words: readonly string[], io: Io): Promise<string[]> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const next = rows
    .filter(row => !row.words[0]?.startsWith('__') && before.every((word, at) => row.words[at] === word))
    .flatMap(row => row.words[before.length] ?? [])
  const row = rows
    .filter(one => one.words.every((word, at) => before[at] === word))
    .toSorted((a, b) => b.words.length - a.words.length)[0]
  const own = row ? await candidatesFor(await loaded(row), before.slice(row.words.length), typed, io) : []
  return [...new Set([...next, ...own])].filter(one => one.startsWith(typed)).slice(0, maxCandidates)
}

async function candidatesFor(command: Command, words: readonly string[], typed: string, io: Io): Promise<string[]> {
  const last = flagNamed(command, words.at(-1))
  const target = targetIn(command, words)
  if (last && last.flag.type !== 'switch') return valuesOf(last.name, last.flag, { io, target })
  if (typed.startsWith('-')) return Object.keys(command.flags).map(name => `--${name}`)
  const given = words.filter(
    (word, at) => !word.startsWith('-') && (flagNamed(command, words[at - 1])?.flag.type ?? 'switch') === 'switch',
  )
  const positionals = command.positionals ?? []
  const next = positionals[given.length] ?? (positionals.at(-1)?.many ? positionals.at(-1) : undefined)
  if (!next || given.length > positionals.length + 20) return []
  if (/^(KIND|RESOURCE)$/.test(next.name)) return kindWords()
  if (command.words[0] === 'context') return Object.keys((await readContexts(io)).contexts)
  if (next.name.startsWith('TEAM')) return namesOf('team', { io, target })
  if (!next.name.startsWith('NAME')) return []
  const ofKind = command.words[1] ?? given.find((_, at) => /^(KIND|RESOURCE)$/.test(positionals[at]?.name ?? ''))
  return ofKind && !command.words.includes('create') ? namesOf(ofKind, { io, target }) : []
}

type TargetFlags = { readonly [flag in 'context' | 'namespace' | 'project']?: string }
type Lookup = { readonly io: Io; readonly target: TargetFlags }

/** Takes the target from flags that are already on the command line. */
function targetIn(command: Command, words: readonly string[]): TargetFlags {
  const { read } = readTokens(words, command.flags, [])
  return Object.fromEntries(
    (['context', 'namespace', 'project'] as const).flatMap(flag => {
      const declared = command.flags[flag]
      // A context of a kubeconfig, and the namespace of an agent, are about another server.
      const isOther = declared !== undefined && 'value' in declared && otherValues.has(declared.value)
      const value = isOther ? undefined : read.get(flag)?.at(-1)
      return value ? [[flag, value]] : []
    }),
  )
}

function flagNamed({ flags }: Command, word = ''): { readonly name: string; readonly flag: Flag } | undefined {
  const found = Object.entries(flags).find(
    ([name, { short }]) => word === `--${name}` || (short && word === `-${short}`),
  )
  return found && { name: found[0], flag: found[1] }
}

async function valuesOf(name: string, flag: Flag, lookup: Lookup): Promise<string[]> {
  if (flag.type !== 'switch' && flag.choices) return [...flag.choices]
  if (name === 'context' && flag.type !== 'switch' && flag.value === kubeContext) return kubeContexts(lookup.io)
  if (name === 'context') return Object.keys((await readContexts(lookup.io)).contexts)
  if (name === 'cluster') return namesOf('cluster', lookup)
  if (name === 'secret') return namesOf('secret', lookup)
  return name === 'for-team' || name === 'team' ? namesOf('team', lookup) : []
}

async function kubeContexts(io: Io): Promise<string[]> {
  const bytes = await io.files.read(kubeconfigPath(io.env))
  const { value } = decodeYaml(bytes ?? new Uint8Array())
  const contexts = isObject(value) && Array.isArray(value['contexts']) ? value['contexts'] : []
  return contexts.flatMap(one => (isObject(one) && typeof one['name'] === 'string' ? [one['name']] : []))
}

async function namesOf(word: string, { io, target }: Lookup): Promise<string[]> {
  const session = await openSession(io, target)
  try {
    const kind = anyKind(word, target.project)
    const names: string[] = []
    for await (const { metadata } of listAll(session.rows, kind, {
      namespace: namespaceFor(kind, target, session.namespace),
    }))
      if (names.push(metadata.name ?? '') >= maxCandidates) break
    return names
  } finally {
    session.close()
  }
}

const scripts: { readonly [shell: string]: string } = {
  bash: `_platform() {
  mapfile -t COMPREPLY < <(platform __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _platform platform
`,
  zsh: `#compdef platform
_platform() {
  local -a found
  found=("\${(@f)$(platform __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
compdef _platform platform
`,
  fish: `complete -c platform -f -a '(platform __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

export const completion = defineCommand({
  words: ['completion'],
  what: 'Print a shell completion script for commands, flags and the names of existing objects.',
  examples: [
    { what: 'bash', command: 'source <(platform completion bash)' },
    { what: 'zsh', command: 'source <(platform completion zsh)' },
    { what: 'fish', command: 'platform completion fish | source' },
  ],
  flags: {},
  positionals: [{ name: 'SHELL', what: 'bash, zsh or fish' }],
  run: async ({ words: [shell = ''] }, io) => {
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
    if (script === undefined)
      throw new UsageError([`unknown shell ${quoted(shell)}: use one of ${Object.keys(scripts).join(', ')}`])
    io.out(script)
    return 0
  },
})
