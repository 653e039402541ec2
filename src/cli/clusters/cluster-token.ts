// `platform token`: a short-lived token for one cluster, cached until shortly before it expires. kubectl runs it as an exec plugin.

import { isObject, type JsonObject } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { DirectClusterEndpointToken } from '../../kinds/direct-cluster-endpoint-token.ts'
import { contextFlag, namespaceProblems } from '../flags.ts'
import { warnings } from '../keys/shown-once.ts'
import { ownerDirectory } from '../secrets/offline-cache.ts'
import { openSession, sessionTarget, withoutKey } from '../session.ts'

/** A cluster that trusts the issuer without a gateway accepts at most this (D31). */
const ttl = 900
/** The rest of the lifetime at which a new token is created: a request must not start with a token that is about to expire. */
const renewBefore = 60_000

type Token = { readonly token: string; readonly expirationTimestamp: string }

export const clusterToken = defineCommand({
  words: ['token'],
  what: 'Print a token for one connected cluster, valid for at most 15 minutes. It is cached until one minute before it expires.',
  examples: [
    {
      what: 'The command in the kubeconfig of `platform kubeconfig --cluster prod`',
      command: 'platform token --cluster prod --exec-credential',
    },
  ],
  flags: {
    ...contextFlag,
    cluster: {
      type: 'text',
      value: 'CLUSTER',
      what: 'The connected cluster.',
      required: true,
      check: namespaceProblems,
    },
    'exec-credential': { type: 'switch', what: 'Print an ExecCredential (client.authentication.k8s.io/v1).' },
    refresh: { type: 'switch', what: 'Create a new token even if one is cached, for example after it was revoked.' },
  },
  run: async ({ flags }, io) => {
    if (flags['exec-credential'] && io.isTerminal)
      throw new UsageError([
        'platform token --exec-credential does not write to a terminal because its output contains the token: pipe or redirect it',
      ])
    // The kubeconfig chooses the key, so ignore the one in the environment.
    const own = flags.context === undefined ? io : withoutKey(io)
    const { token, expirationTimestamp } = await tokenFor(own, flags)
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      // kubectl runs the plugin again at this time.
      status: { token, expirationTimestamp: new Date(Date.parse(expirationTimestamp) - renewBefore).toISOString() },
    }
    io.out(flags['exec-credential'] ? `${JSON.stringify(credential)}\n` : `${token}\n`)
    return 0
  },
})

type TokenFlags = { readonly context: string | undefined; readonly cluster: string; readonly refresh: boolean }

/** Commands that run at the same time wait for each other, so that one of them creates the token. */
async function tokenFor(io: Io, flags: TokenFlags): Promise<Token> {
  const target = await sessionTarget(io, flags)
  // Belongs to the key, so that another key gets another token, and signing out deletes it.
  const file = `${ownerDirectory(io, target)}/token-${flags.cluster}`
  const known = flags.refresh ? undefined : await readToken(io, file)
  if (known) return known
  return io.files.locked(file, async () => {
    const made = flags.refresh ? undefined : await readToken(io, file)
    if (made) return made
    const token = await createToken(io, flags)
    await io.files.write(file, `${JSON.stringify(token)}\n`)
    return token
  })
}

async function readToken(io: Io, file: string): Promise<Token | undefined> {
  const bytes = await io.files.read(file)
  const value = bytes && parsed(new TextDecoder().decode(bytes))
  const { token, expirationTimestamp } = value ?? {}
  if (typeof token !== 'string' || typeof expirationTimestamp !== 'string') return undefined
  return Date.parse(expirationTimestamp) - renewBefore > io.now() ? { token, expirationTimestamp } : undefined
}

/** A damaged file counts as missing. */
function parsed(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

async function createToken(io: Io, flags: TokenFlags): Promise<Token> {
  const session = await openSession(io, flags)
  try {
    const spec = { ttl, scope: { clusters: [{ cluster: flags.cluster }] } }
    const { object } = await session.resources.create(DirectClusterEndpointToken, '', { spec }, { warn: warnings(io) })
    return object.status as Token
  } finally {
    session.close()
  }
}
