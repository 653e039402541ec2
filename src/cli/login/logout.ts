// `platform logout` and `platform context use|list|delete`: manages the contexts of this machine.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { defineCommand, type Io } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, headersFlag, namespaceProblems, yesFlag } from '../flags.ts'
import { printTable } from '../print.ts'
import { openSession, withoutKey } from '../session.ts'
import { type Context, changeContexts, contextNamed, forgetContext, readContexts } from './contexts.ts'

export const logout = defineCommand({
  words: ['logout'],
  what: 'Delete a context and its key. A key created by signing in is also revoked on the server.',
  examples: [
    { what: 'Sign out of the current context', command: 'platform logout' },
    { what: 'Also end your sessions in browsers and on other machines', command: 'platform logout --everywhere' },
  ],
  flags: {
    ...contextFlag,
    everywhere: {
      type: 'switch',
      what: 'End all sessions of the user: in browsers and on other machines. Access keys stay valid.',
    },
  },
  run: async ({ flags }, io) => {
    const contexts = await readContexts(io)
    const name = contextNamed(contexts, flags.context)
    const context = contexts.contexts[name]
    if (flags.everywhere) await endSessions(io, name)
    const revoked = await revoke(io, name, context).catch((error: Error) => {
      const what = context?.keyType ? 'cannot revoke the key' : 'cannot find out whether the key must be revoked'
      io.err(`platform: warning: ${what}: ${error.message}\n`)
      return false
    })
    await forgetContext(io, name)
    io.err(`Signed out of ${name}${revoked ? '; its key is revoked' : ''}.\n`)
    return 0
  },
})

/** Throws if a session could not be ended. The context then stays, so that the user can try again. */
async function endSessions(io: Io, name: string): Promise<void> {
  const { resources, close } = await openSession(withoutKey(io), { context: name })
  try {
    const { username = '', keyName } = await reviewSelf(resources)
    const fieldSelector = `spec.user=${username.replace(/[\\,=]/g, '\\$&')}`
    const keys = await Array.fromAsync(listAll(resources, OwnedAccessKey, { fieldSelector }))
    const sessions = keys.filter(
      ({ spec, metadata }) => spec?.['type'] === 'Login' && metadata.deletionTimestamp === undefined,
    )
    // The key in use comes last, because it deletes the others.
    const isOwn = ({ metadata }: Resource) => metadata.name === keyName
    const ordered = [...sessions.filter(one => !isOwn(one)), ...sessions.filter(isOwn)]
    for (const { metadata } of ordered)
      await resources.delete(OwnedAccessKey, { namespace: '', name: metadata.name ?? '' }).catch(ignoreNotFound)
    io.err(`Ended ${ordered.length} ${ordered.length === 1 ? 'session' : 'sessions'} of ${username}.\n`)
  } finally {
    close()
  }
}

function ignoreNotFound(error: unknown): void {
  if (!(error instanceof ApiError) || error.code !== 404) throw error
}

/** Revokes only keys of type Login. Other keys may be in use elsewhere. */
async function revoke(io: Io, name: string, context: Context | undefined): Promise<boolean> {
  const { keyName, keyType = 'Login' } = context ?? {}
  if (keyName === undefined || keyType !== 'Login') return false
  const session = await openSession(withoutKey(io), { context: name })
  const ref = { namespace: '', name: keyName }
  try {
    const { object } = await session.resources.get(OwnedAccessKey, ref)
    if (object.spec?.['type'] !== 'Login') return false
    await session.resources.delete(OwnedAccessKey, ref)
    return true
  } catch (error) {
    // The key is already deleted, or it may not read itself.
    if (error instanceof ApiError && [401, 403, 404].includes(error.code)) return false
    throw error
  } finally {
    session.close()
  }
}

const contextName = [{ name: 'NAME', what: 'the context' }]

export const contextUse = defineCommand({
  words: ['context', 'use'],
  what: 'Switch to a context.',
  examples: [{ what: 'Switch to another server', command: 'platform context use staging' }],
  flags: {
    namespace: {
      type: 'text',
      short: 'n',
      value: 'NAMESPACE',
      what: 'Also set its namespace.',
      check: namespaceProblems,
    },
  },
  positionals: contextName,
  run: async ({ flags, words: [requested] }, io) => {
    await changeContexts(io, before => {
      const name = contextNamed(before, requested)
      const context = before.contexts[name]
      const changed = context && flags.namespace ? { ...context, namespace: flags.namespace } : context
      return { current: name, contexts: { ...before.contexts, ...(changed ? { [name]: changed } : {}) } }
    })
    io.err(`The current context is ${requested}.\n`)
    return 0
  },
})

export const contextList = defineCommand({
  words: ['context', 'list'],
  what: 'List contexts. An asterisk marks the current one.',
  examples: [{ what: 'See where you are signed in', command: 'platform context list' }],
  flags: headersFlag,
  run: async ({ flags }, io) => {
    const { current, contexts } = await readContexts(io)
    const rows = Object.entries(contexts).map(([name, { server, user = '', namespace = 'default', keyIn }]) => [
      name === current ? '*' : '',
      name,
      server,
      user,
      namespace,
      keyIn,
    ])
    if (!rows.length) io.err('platform: no contexts; sign in with platform login URL\n')
    else printTable(io, ['', 'NAME', 'SERVER', 'USER', 'NAMESPACE', 'KEY'], rows, flags['no-headers'])
    return 0
  },
})

export const contextDelete = defineCommand({
  words: ['context', 'delete'],
  what: 'Delete a context and its key on this machine only. The key stays valid on the server.',
  asksBefore: 'deletes the key',
  examples: [{ what: 'Remove a server that no longer exists', command: 'platform context delete staging --yes' }],
  flags: yesFlag,
  positionals: contextName,
  run: async ({ flags, words: [requested] }, io) => {
    const name = contextNamed(await readContexts(io), requested)
    await confirm(io, `Delete context "${name}" and its key from this machine?`, flags.yes)
    await forgetContext(io, name)
    io.err(`Deleted context ${name}.\n`)
    return 0
  },
})
