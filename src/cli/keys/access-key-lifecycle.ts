// `platform list accesskeys`, `rotate`, `disable` and `enable accesskey`.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readDuration, withFlagName } from '../../host/duration.ts'
import { overlapReason } from '../../kinds/key-rotation.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, dryRunFlag, dryRunNote, isDryRun, outputFlag, yesFlag } from '../flags.ts'
import { type GetFlags, getFlags, show } from '../get.ts'
import { type Context, changeContexts, forgetCopies, readContexts, storeKey } from '../login/contexts.ts'
import { ago, nameOf, paint, printObjects, printTable } from '../print.ts'
import { isScopeDenial, warnScopeMayHide } from '../scope-denied.ts'
import { selectField } from '../select-field.ts'
import { openSession, type Session, type SessionFlags } from '../session.ts'
import { teamNameOf } from '../teams/resolve-team.ts'
import { printSecret } from './access-keys.ts'
import { connectionAddress } from './connection-string.ts'
import { expiryOf, expiryText, scopeText } from './key-summary.ts'
import { warnings } from './shown-once.ts'

const day = 86_400_000
const unusedAfter = 90 * day
const expiringWithin = 7 * day

const { project: _, namespace: __, 'all-namespaces': ___, ...listFlags } = getFlags

export const listAccessKeys = defineCommand({
  words: ['list', 'accesskeys'],
  what: 'List your access keys and flag those that are unused, expiring or unscoped.',
  examples: [
    { what: 'Find keys to remove', command: 'platform list accesskeys' },
    { what: 'Keys of another user, for administrators', command: 'platform list accesskeys --user ada' },
  ],
  flags: {
    ...listFlags,
    user: { type: 'text', value: 'USER', what: 'Only keys of this user.' },
    team: { type: 'text', value: 'TEAM', what: 'Only keys of this team.' },
    disabled: { type: 'switch', what: 'Only disabled keys.' },
  },
  run: async ({ flags }, io) => {
    if (flags.user !== undefined && flags.team !== undefined)
      throw new UsageError(['--user cannot be combined with --team: a key has one owner'])
    const fieldSelector = fieldSelectorOf({ ...flags, team: await teamOf(io, flags) })
    const isWide = flags.output === 'wide'
    if (flags.watch || (flags.output && flags.output !== 'table' && !isWide))
      return show(
        io,
        { ...flags, 'all-namespaces': false, namespace: undefined, project: undefined } as GetFlags,
        [OwnedAccessKey.plural],
        fieldSelector,
      )
    const session = await openSession(io, flags)
    try {
      const selection = {
        ...(flags.selector ? { labelSelector: flags.selector } : {}),
        ...(fieldSelector ? { fieldSelector } : {}),
      }
      const { keys, areRows } = await keysOf(session, selection)
      if (!keys.length || areRows) {
        printObjects(io, OwnedAccessKey, keys, { ...flags, isList: true })
        if (!keys.length) await warnScopeMayHide(io, session)
      } else {
        const more = isWide ? ['TYPE', 'AGE'] : []
        const header = ['NAME', 'DISPLAY-NAME', 'OWNER', 'LAST-USE', 'EXPIRES', 'SCOPE', 'FLAGS', ...more]
        printTable(
          io,
          header,
          keys.map(key => [...rowOf(io, key), ...(isWide ? wideCells(io, key) : [])]),
          flags['no-headers'],
        )
      }
      return 0
    } finally {
      session.close()
    }
  },
})

/** The scope role platform-cli allows table rows, and no objects (D25). */
const keysOf = (session: Session, selection: object) =>
  Array.fromAsync(listAll(session.resources, OwnedAccessKey, selection)).then(
    keys => ({ keys, areRows: false }),
    async error => {
      if (!isScopeDenial(error)) throw error
      return { keys: await Array.fromAsync(listAll(session.rows, OwnedAccessKey, selection)), areRows: true }
    },
  )

type OwnerFlags = { readonly user?: string | undefined; readonly team?: string | undefined; readonly disabled: boolean }

async function teamOf(
  io: Io,
  { team, ...flags }: SessionFlags & Pick<OwnerFlags, 'team'>,
): Promise<string | undefined> {
  if (team === undefined) return undefined
  const session = await openSession(io, flags)
  try {
    return await teamNameOf(session, team)
  } finally {
    session.close()
  }
}

function fieldSelectorOf({ user, team, disabled }: OwnerFlags): string {
  return [
    ...(user === undefined ? [] : [selectField('spec.user', user)]),
    ...(team === undefined ? [] : [selectField('spec.team', team)]),
    ...(disabled ? ['spec.disabled=true'] : []),
  ].join(',')
}

function rowOf(io: Io, key: Resource): string[] {
  const { user, team, subject } = (key.spec ?? {}) as { user?: string; team?: string; subject?: string }
  const last = key.status?.['lastActivity']
  return [
    key.metadata.name ?? '',
    String(key.spec?.['displayName'] ?? ''),
    user ?? (team ? `team ${team}` : (subject ?? '')),
    typeof last === 'string' ? `${ago(last, io.now())} ago` : 'never',
    expiryText(key, io.now()),
    scopeText(key.spec?.['scope']) ?? '',
    flagsOf(key, io.now()).join(','),
  ]
}

const wideCells = (io: Io, { metadata, spec }: Resource): string[] => [
  String(spec?.['type'] ?? ''),
  ago(metadata.creationTimestamp, io.now()),
]

export function flagsOf(key: Resource, now: number): string[] {
  const last = key.status?.['lastActivity'] ?? key.metadata.creationTimestamp
  const expiry = expiryOf(key)
  const ttl = Number(key.spec?.['ttl'] ?? 0) * 1000
  // "Expiring" means the last tenth of the lifetime, at most a week: a key of one hour is not always expiring.
  const soon = Math.min(expiringWithin, ttl / 10)
  return [
    ...(key.spec?.['disabled'] === true ? ['disabled'] : []),
    ...(expiry !== undefined && expiry <= now
      ? ['expired']
      : expiry !== undefined && expiry - now < soon
        ? ['expiring']
        : []),
    ...(typeof last === 'string' && now - Date.parse(last) > unusedAfter ? ['unused'] : []),
    // A session cannot have a scope, so that is not worth a flag.
    ...(key.spec?.['type'] === 'Login'
      ? ['session']
      : scopeText(key.spec?.['scope']) === undefined
        ? ['unscoped']
        : []),
  ]
}

const keyName = [{ name: 'NAME', what: 'the access key' }]

export const rotateAccessKey = defineCommand({
  words: ['rotate', 'accesskey'],
  what: 'Issue a new secret for an access key and print it. It is shown only once.',
  asksBefore: 'invalidates the old key immediately (without --overlap, or with --force)',
  examples: [{ what: 'Keep the old key valid for another hour', command: 'platform rotate accesskey ci --overlap 1h' }],
  flags: {
    ...contextFlag,
    ...yesFlag,
    overlap: {
      type: 'text',
      value: 'TIME',
      what: 'How long the old key stays valid. Default: it becomes invalid immediately.',
    },
    force: {
      type: 'switch',
      what: 'Rotate during the overlap of the last rotation. The oldest key and its tokens become invalid immediately.',
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
      const old = flags.force ? 'old keys' : 'old key'
      const question = `Rotate ownedaccesskey/${name} on ${session.server} and invalidate its ${old} immediately?`
      if (!overlapSeconds || flags.force) await confirm(io, question, flags.yes)
      const address = await connectionAddress(io, session, flags.output)
      const body = { kind: 'KeyRotation', spec: { overlapSeconds, ...(flags.force ? { force: true } : {}) } }
      const { object } = await session.resources
        .act(OwnedAccessKey, { namespace: '', name }, 'rotate', body, { warn: warnings(io) })
        .catch(withFlagName('--overlap', flags.overlap, 'spec.overlapSeconds'))
        .catch(withForceHint)
      const storeError = await storeRotatedKey(io, session, name, String(object.spec?.['key'] ?? '')).then(
        () => undefined,
        (error: Error) => error,
      )
      io.err(`${nameOf(OwnedAccessKey, object)} rotated; the new key is shown only once\n`)
      printSecret(io, object, { output: flags.output, address })
      if (object.spec?.['disabled'] === true)
        io.err(
          `platform: warning: ${nameOf(OwnedAccessKey, object)} is disabled, and so is the new key: platform enable accesskey ${name}\n`,
        )
      if (storeError)
        throw new Error(
          `context "${session.context}" still has the old key: ${storeError.message}; run platform login ${session.server} with the new key`,
        )
      return 0
    } finally {
      session.close()
    }
  },
})

function withForceHint(error: unknown): never {
  const causes = error instanceof ApiError ? error.details?.causes : undefined
  const running = causes?.find(({ reason }) => reason === overlapReason)
  if (!running) throw error
  throw new ApiError(409, 'Conflict', `${running.message}; use --force to end it now and revoke its tokens`)
}

/** Stores the new key in the context if it replaces the key in use, so that the user stays signed in. */
async function storeRotatedKey(io: Io, { context }: Session, name: string, key: string): Promise<void> {
  const isOwn = (own: Context | undefined): own is Context => own?.keyName === name
  if (!context || !key || !isOwn((await readContexts(io)).contexts[context])) return
  await changeContexts(io, async before => {
    const own = before.contexts[context]
    if (!isOwn(own)) return before
    await forgetCopies(io, context, own, key)
    return {
      ...before,
      contexts: { ...before.contexts, [context]: { ...own, keyIn: await storeKey(io, context, key) } },
    }
  })
}

const switchKey = (word: 'disable' | 'enable', what: string) =>
  defineCommand({
    words: [word, 'accesskey'],
    what,
    examples: [{ command: `platform ${word} accesskey ci` }],
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

export const disableAccessKey = switchKey('disable', 'Disable an access key; the server rejects its next request.')
export const enableAccessKey = switchKey('enable', 'Enable an access key again.')
