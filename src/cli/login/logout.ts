// `platform logout` and `platform context use|list|delete`: the contexts of this machine.

import { ApiError } from '../../api/errors.ts'
import { defineCommand, type Io } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { confirm } from '../confirm.ts'
import { contextFlag, headersFlag, namespaceProblems, yesFlag } from '../flags.ts'
import { printTable } from '../print.ts'
import { openSession, withoutKey } from '../session.ts'
import { type Context, changeContexts, contextNamed, forgetContext, readContexts } from './contexts.ts'

export const logout = defineCommand({
  words: ['logout'],
  what: 'Forget a context and its key; a key that was made by signing in is revoked.',
  examples: [{ what: 'Sign out of the current context', command: 'platform logout' }],
  flags: contextFlag,
  run: async ({ flags }, io) => {
    const contexts = await readContexts(io)
    const name = contextNamed(contexts, flags.context)
    const context = contexts.contexts[name]
    const revoked = await revoke(io, name, context).catch((error: Error) => {
      const what = context?.keyType
        ? 'the key could not be revoked'
        : 'whether its key is to be revoked could not be asked'
      io.err(`platform: warning: ${what}: ${error.message}\n`)
      return false
    })
    await forgetContext(io, name)
    io.err(`Signed out of ${name}${revoked ? '; its key is revoked' : ''}.\n`)
    return 0
  },
})

/** Only a key of type Login goes with its session: others were made for more than that. */
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
    // It is gone already, or may not be looked at: then it is no business of this command.
    if (error instanceof ApiError && [401, 403, 404].includes(error.code)) return false
    throw error
  } finally {
    session.close()
  }
}

const contextName = [{ name: 'NAME', what: 'the context' }]

export const contextUse = defineCommand({
  words: ['context', 'use'],
  what: 'Make a context the current one.',
  examples: [{ what: 'Go to another server', command: 'platform context use staging' }],
  flags: {
    namespace: {
      type: 'text',
      short: 'n',
      value: 'NAMESPACE',
      what: 'And set its namespace.',
      check: namespaceProblems,
    },
  },
  positionals: contextName,
  run: async ({ flags, words: [asked] }, io) => {
    await changeContexts(io, before => {
      const name = contextNamed(before, asked)
      const context = before.contexts[name]
      const changed = context && flags.namespace ? { ...context, namespace: flags.namespace } : context
      return { current: name, contexts: { ...before.contexts, ...(changed ? { [name]: changed } : {}) } }
    })
    io.err(`The current context is ${asked}.\n`)
    return 0
  },
})

export const contextList = defineCommand({
  words: ['context', 'list'],
  what: 'List the contexts; the current one has a star.',
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
    if (!rows.length) io.err('platform: there is no context: platform login URL\n')
    else printTable(io, ['', 'NAME', 'SERVER', 'USER', 'NAMESPACE', 'KEY'], rows, flags['no-headers'])
    return 0
  },
})

export const contextDelete = defineCommand({
  words: ['context', 'delete'],
  what: 'Forget a context and its key, without telling the server.',
  asksBefore: 'forgets the key',
  examples: [{ what: 'Forget a server that is gone', command: 'platform context delete staging --yes' }],
  flags: yesFlag,
  positionals: contextName,
  run: async ({ flags, words: [asked] }, io) => {
    const name = contextNamed(await readContexts(io), asked)
    await confirm(io, `Forget the context "${name}" and its key?`, flags.yes)
    await forgetContext(io, name)
    io.err(`The context ${name} is forgotten.\n`)
    return 0
  },
})
