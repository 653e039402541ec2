// `platform kubeconfig`, `credential` and `kubectl`: kubectl for the current context, without a key in the kubeconfig.

import { writeYaml } from '../../api/encode.ts'
import { ApiError } from '../../api/errors.ts'
import type { Json } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { Cluster, type ClusterObject } from '../../kinds/cluster.ts'
import { contextFlag, namespaceProblems } from '../flags.ts'
import { runtimeFile } from '../paths.ts'
import { checkServer, namespaceIn, openSession, withoutKey } from '../session.ts'
import { type Context, contextNamed, readContexts } from './contexts.ts'
import { type Kubeconfig, kubeconfigPath, merged } from './kubeconfig-file.ts'

/** Uses an exec plugin, so that the file contains no key. */
async function kubeconfigOf(io: Io, context: string | undefined, cluster?: string): Promise<Kubeconfig> {
  if (io.env['PLATFORM_ACCESS_KEY'] !== undefined)
    throw new UsageError([
      'a kubeconfig needs a context, but PLATFORM_ACCESS_KEY is set: sign in with platform login URL, or unset it',
    ])
  const all = await readContexts(io)
  const name = contextNamed(all, context)
  const found = all.contexts[name] as Context
  checkServer(io, { name, server: found.server, requested: context })
  if (found.server.startsWith('http:'))
    throw new UsageError([
      `kubectl requires TLS, but context "${name}" uses ${found.server}: sign in to its https address`,
    ])
  // Uses the absolute path: kubectl may run with another PATH, for example outside npx.
  const installed = await io.files.find('platform')
  const [command = '', ...first] = installed && !installed.includes('/node_modules/.bin/') ? [installed] : io.program
  const entry = cluster === undefined ? `platform-${name}` : `platform-${name}-${cluster}`
  const { server, ca } =
    cluster === undefined ? managementOf(found) : await clusterEndpoint(io, { ...found, name }, cluster)
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command,
    args: [
      ...first,
      ...(cluster === undefined ? ['credential'] : ['token', '--cluster', cluster, '--exec-credential']),
      ...['--context', name],
    ],
    interactiveMode: 'Never',
    installHint: 'platform is not on the PATH; it is required to authenticate',
  }
  // The namespace of the context is one of the management API.
  const namespace = cluster === undefined ? (namespaceIn(io) ?? found.namespace) : undefined
  const authority = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: entry, cluster: { server, ...authority } }],
    users: [{ name: entry, user: { exec } }],
    contexts: [{ name: entry, context: { cluster: entry, user: entry, ...(namespace ? { namespace } : {}) } }],
    'current-context': entry,
  }
}

type Endpoint = { readonly server: string; readonly ca: string | undefined }

const managementOf = ({ server, ca }: Context): Endpoint => ({ server: `${server}/kubernetes/management`, ca })

/** The gateway of the cluster, or this server, which forwards requests to it. */
async function clusterEndpoint(
  io: Io,
  { name: context, server, ca }: Context & { readonly name: string },
  cluster: string,
): Promise<Endpoint> {
  const path = `/kubernetes/cluster/${cluster}`
  const central = { server: `${server}${path}`, ca }
  const session = await openSession(withoutKey(io), { context })
  try {
    const { object } = await session.resources.get(Cluster, { namespace: '', name: cluster })
    const { url, caBundle } = (object as ClusterObject).spec?.gateway ?? {}
    return url ? { server: `${url.replace(/\/$/, '')}${path}`, ca: caBundle } : central
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 403 && error.code !== 404)) throw error
    // Users may have access to a cluster without permission to read its object, and a gateway.yaml has clusters without one.
    const why = error.code === 403 ? 'you may not read it' : 'it has no Cluster object'
    io.err(`platform: warning: the kubeconfig for cluster ${cluster} uses ${server}, because ${why}\n`)
    return central
  } finally {
    session.close()
  }
}

export const kubeconfig = defineCommand({
  words: ['kubeconfig'],
  what: 'Print a kubeconfig for the current context or a connected cluster. It contains no key: kubectl runs platform to get it.',
  examples: [
    { what: 'Use it with kubectl', command: 'platform kubeconfig > platform.kubeconfig' },
    { what: 'For a connected cluster', command: 'platform kubeconfig --cluster prod > prod.kubeconfig' },
    { what: 'Add it to your existing kubeconfig', command: 'platform kubeconfig --merge' },
  ],
  flags: {
    ...contextFlag,
    cluster: {
      type: 'text',
      value: 'CLUSTER',
      what: 'For this connected cluster, with tokens that are valid for 15 minutes.',
      check: namespaceProblems,
    },
    merge: {
      type: 'switch',
      what: 'Merge it into the kubeconfig of kubectl and make it the current context.',
    },
  },
  run: async ({ flags }, io) => {
    const config = await kubeconfigOf(io, flags.context, flags.cluster)
    if (!flags.merge) io.out(writeYaml(config as unknown as Json))
    else {
      const file = kubeconfigPath(io.env)
      await io.files.locked(file, async () => {
        await io.files.write(file, merged(await io.files.read(file), file, config))
      })
      io.err(`Added context ${config['current-context']} to ${file}.\n`)
    }
    return 0
  },
})

export const credential = defineCommand({
  words: ['credential'],
  what: 'Print the key as an ExecCredential, for kubectl and other clients (client.authentication.k8s.io).',
  examples: [
    { what: 'The command in the kubeconfig of `platform kubeconfig`', command: 'platform credential --context NAME' },
  ],
  flags: contextFlag,
  run: async ({ flags }, io) => {
    if (io.isTerminal)
      throw new UsageError([
        'platform credential does not write to a terminal because its output contains the key: pipe or redirect it',
      ])
    // The kubeconfig chooses the key, so ignore the one in the environment.
    const session = await openSession(flags.context === undefined ? io : withoutKey(io), flags)
    session.close()
    const answer = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: session.key },
    }
    io.out(`${JSON.stringify(answer)}\n`)
    return 0
  },
})

export const kubectl = defineCommand({
  words: ['kubectl'],
  what: 'Run kubectl on the current context. All arguments are passed to kubectl.',
  examples: [{ what: 'Anything that platform has no command for', command: 'platform kubectl explain team.spec' }],
  flags: {},
  ownFlags: true,
  run: async ({ args }, io) => {
    const program = await io.files.find('kubectl')
    if (!program) throw new Error('kubectl is not on the PATH: see https://kubernetes.io/docs/tasks/tools/')
    const file = runtimeFile(io.env, `kubectl-${Buffer.from(io.random(6)).toString('hex')}.kubeconfig`)
    await io.files.write(file, writeYaml((await kubeconfigOf(io, io.env['PLATFORM_CONTEXT'])) as unknown as Json))
    try {
      return await io.start([program, ...args], { env: { ...io.env, KUBECONFIG: file } }).ended
    } finally {
      await io.files.remove(file)
    }
  },
})
