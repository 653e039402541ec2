// `platform list accesskeys`, `rotate`, `disable` and `enable accesskey`: the keys that are there.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { defineCommand, type Io } from '../../host/command.ts'
import { inWordsOf, readDuration } from '../../host/duration.ts'
import { overlapReason } from '../../kinds/key-rotation.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { type GetFlags, getFlags, show } from '../get.ts'
import { type Context, changeContexts, forgetCopies, keepKey, readContexts } from '../login/contexts.ts'
import { ago, nameOf, paint, printObjects, printTable } from '../print.ts'
import { tellOfScope } from '../scope-denied.ts'
import { openSession, type Session } from '../session.ts'
import { printSecret } from './access-keys.ts'
import { expiryOf, expiryText, scopeText } from './key-summary.ts'
import { warnings } from './shown-once.ts'

const day = 86_400_000
const unusedAfter = 90 * day
const expiringWithin = 7 * day

const { project: _, namespace: __, 'all-namespaces': ___, ...listFlags } = getFlags

export const listAccessKeys = defineCommand({
  words: ['list', 'accesskeys'],
  what: 'List your access keys, with what is to be looked at: unused, expiring, unscoped.',
  examples: [{ what: 'Which keys should go', command: 'platform list accesskeys' }],
  flags: listFlags,
  run: async ({ flags }, io) => {
    const isWide = flags.output === 'wide'
    if (flags.watch || (flags.output && flags.output !== 'table' && !isWide))
      return show(io, { ...flags, 'all-namespaces': false } as GetFlags, [OwnedAccessKey.plural])
    const session = await openSession(io, flags)
    try {
      const selection = flags.selector ? { labelSelector: flags.selector } : {}
      const keys = await Array.fromAsync(listAll(session.resources, OwnedAccessKey, selection))
      if (!keys.length) {
        printObjects(io, OwnedAccessKey, keys, { ...flags, isList: true })
        await tellOfScope(io, session)
      } else {
        const more = isWide ? ['TYPE', 'DISPLAY-NAME', 'AGE'] : []
        const header = ['NAME', 'OWNER', 'LAST-USE', 'EXPIRES', 'SCOPE', 'FLAGS', ...more]
        printTable(
          io,
          header,
          keys.map(key => [...rowOf(io, key), ...(isWide ? moreOf(io, key) : [])]),
          flags['no-headers'],
        )
      }
      return 0
    } finally {
      session.close()
    }
  },
})

function rowOf(io: Io, key: Resource): string[] {
  const { user, team, subject } = (key.spec ?? {}) as { user?: string; team?: string; subject?: string }
  const last = key.status?.['lastActivity']
  return [
    key.metadata.name ?? '',
    user ?? (team ? `team ${team}` : (subject ?? '')),
    typeof last === 'string' ? `${ago(last, io.now())} ago` : 'never',
    expiryText(key, io.now()),
    scopeText(key.spec?.['scope']) ?? '',
    flagsOf(key, io.now()).join(','),
  ]
}

const moreOf = (io: Io, { metadata, spec }: Resource): string[] => [
  String(spec?.['type'] ?? ''),
  String(spec?.['displayName'] ?? ''),
  ago(metadata.creationTimestamp, io.now()),
]

export function flagsOf(key: Resource, now: number): string[] {
  const last = key.status?.['lastActivity'] ?? key.metadata.creationTimestamp
  const expiry = expiryOf(key)
  const ttl = Number(key.spec?.['ttl'] ?? 0) * 1000
  // A key of an hour is not expiring all its life: its last tenth counts, and a week at most.
  const soon = Math.min(expiringWithin, ttl / 10)
  return [
    ...(key.spec?.['disabled'] === true ? ['disabled'] : []),
    ...(expiry !== undefined && expiry <= now
      ? ['expired']
      : expiry !== undefined && expiry - now < soon
        ? ['expiring']
        : []),
    ...(typeof last === 'string' && now - Date.parse(last) > unusedAfter ? ['unused'] : []),
    ...(scopeText(key.spec?.['scope']) === undefined ? ['unscoped'] : []),
  ]
}

const keyName = [{ name: 'NAME', what: 'the access key' }]

export const rotateAccessKey = defineCommand({
  words: ['rotate', 'accesskey'],
  what: 'Replace the key of an access key and print the new one; it is shown this once.',
  asksBefore: 'ends the old key at once, without --overlap or with --force',
  examples: [{ what: 'The old one works for an hour more', command: 'platform rotate accesskey ci --overlap 1h' }],
  flags: {
    ...contextFlag,
    ...yesFlag,
    overlap: { type: 'text', value: 'TIME', what: 'How long the old key still works; by default it ends at once.' },
    force: {
      type: 'switch',
      what: 'Rotate while the overlap of the last rotation runs: the key from before it ends at once, with its tokens.',
    },
    output: {
      ...outputFlag.output,
      choices: ['value', 'connection', 'json', 'yaml', 'name'],
      default: 'value',
    },
  },
  positionals: keyName,
  run: async ({ flags, words: [name = ''] }, io) => {
    const overlapSeconds = flags.overlap === undefined ? 0 : readDuration('--overlap', flags.overlap)
    const session = await openSession(io, flags)
    try {
      const ends = flags.force ? 'its old keys end' : 'its old key ends'
      const question = `Rotate ownedaccesskey/${name} on ${session.server}, so that ${ends} at once?`
      if (!overlapSeconds || flags.force) await confirm(io, question, flags.yes)
      const body = { kind: 'KeyRotation', spec: { overlapSeconds, ...(flags.force ? { force: true } : {}) } }
      const { object } = await session.resources
        .act(OwnedAccessKey, { namespace: '', name }, 'rotate', body, { warn: warnings(io) })
        .catch(inWordsOf('--overlap', flags.overlap, 'spec.overlapSeconds'))
        .catch(withForce)
      const unkept = await keepOwn(io, session, name, String(object.spec?.['key'] ?? '')).then(
        () => undefined,
        (error: Error) => error,
      )
      io.err(`${nameOf(OwnedAccessKey, object)} rotated; its key is shown this once\n`)
      printSecret(io, session, object, flags.output)
      if (object.spec?.['disabled'] === true)
        io.err(
          `platform: warning: ${nameOf(OwnedAccessKey, object)} is disabled, the new key too: platform enable accesskey ${name}\n`,
        )
      if (unkept)
        throw new Error(
          `the context "${session.context}" still has the old key: ${unkept.message}; platform login ${session.server} takes the new one`,
        )
      return 0
    } finally {
      session.close()
    }
  },
})

function withForce(error: unknown): never {
  const causes = error instanceof ApiError ? error.details?.causes : undefined
  const running = causes?.find(({ reason }) => reason === overlapReason)
  if (!running) throw error
  throw new ApiError(409, 'Conflict', `${running.message}; --force ends it now and revokes its tokens`)
}

/** Whoever rotates the key they are signed in with stays signed in. */
async function keepOwn(io: Io, { context }: Session, name: string, key: string): Promise<void> {
  const isOwn = (own: Context | undefined): own is Context => own?.keyName === name
  if (!context || !key || !isOwn((await readContexts(io)).contexts[context])) return
  await changeContexts(io, async before => {
    const own = before.contexts[context]
    if (!isOwn(own)) return before
    await forgetCopies(io, context, own, key)
    return {
      ...before,
      contexts: { ...before.contexts, [context]: { ...own, keyIn: await keepKey(io, context, key) } },
    }
  })
}

const switchKey = (word: 'disable' | 'enable', what: string) =>
  defineCommand({
    words: [word, 'accesskey'],
    what,
    examples: [{ what, command: `platform ${word} accesskey ci` }],
    flags: { ...contextFlag, ...dryRunFlag },
    positionals: keyName,
    run: async ({ flags, words: [name = ''] }, io) => {
      const session = await openSession(io, flags)
      try {
        const body = { spec: { disabled: word === 'disable' } }
        const options = { fieldManager: 'platform', dryRun: isDryRun(flags) }
        await session.resources.patch(OwnedAccessKey, { namespace: '', name }, { type: 'merge', body }, options)
        const done = paint(io, word === 'disable' ? 'yellow' : 'green', `${word}d`)
        io.out(`ownedaccesskey/${name} ${done}${dryRunNote(flags)}\n`)
        return 0
      } finally {
        session.close()
      }
    },
  })

export const disableAccessKey = switchKey('disable', 'Switch an access key off; its next request is refused.')
export const enableAccessKey = switchKey('enable', 'Switch an access key on again.')
