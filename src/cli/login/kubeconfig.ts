// `platform kubeconfig`, `credential` and `kubectl`: kubectl for the current context, without a key in the kubeconfig.

import { type Document, isMap, isSeq, parseDocument } from 'yaml'
import { writeYaml } from '../../api/encode.ts'
import type { Json } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { contextFlag } from '../flags.ts'
import { runtimeFile } from '../paths.ts'
import { checkServer, namespaceIn, openSession, withoutKey } from '../session.ts'
import { type Context, contextNamed, readContexts } from './contexts.ts'

type Named = { readonly name: string; readonly [field: string]: Json }

/** Uses an exec plugin, so that the file contains no key. */
async function kubeconfigOf(io: Io, context: string | undefined) {
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
  const entry = `platform-${name}`
  const ca = found.ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(found.ca).toString('base64') }
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command,
    args: [...first, 'credential', '--context', name],
    interactiveMode: 'Never',
    installHint: 'platform is not on the PATH; it is required to authenticate',
  }
  const namespace = namespaceIn(io) ?? found.namespace
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: entry, cluster: { server: `${found.server}/kubernetes/management`, ...ca } }] as Named[],
    users: [{ name: entry, user: { exec } }] as Named[],
    contexts: [
      { name: entry, context: { cluster: entry, user: entry, ...(namespace ? { namespace } : {}) } },
    ] as Named[],
    'current-context': entry,
  }
}

export const kubeconfig = defineCommand({
  words: ['kubeconfig'],
  what: 'Print a kubeconfig for the current context. It contains no key: kubectl runs platform to get it.',
  examples: [
    { what: 'Use it with kubectl', command: 'platform kubeconfig > platform.kubeconfig' },
    { what: 'Add it to your existing kubeconfig', command: 'platform kubeconfig --merge' },
  ],
  flags: {
    ...contextFlag,
    merge: {
      type: 'switch',
      what: 'Merge it into the kubeconfig of kubectl and make it the current context.',
    },
  },
  run: async ({ flags }, io) => {
    const config = await kubeconfigOf(io, flags.context)
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

/** The file that kubectl writes to. */
function kubeconfigPath({ KUBECONFIG: files = '', HOME: home }: Io['env']): string {
  const first = files.split(':').find(Boolean)
  if (first === undefined && !home) throw new UsageError(['cannot find the kubeconfig: set HOME or KUBECONFIG'])
  return first ?? `${home}/.kube/config`
}

/** Keeps comments and other entries. Throws if the file is not a kubeconfig. */
function merged(bytes: Uint8Array | undefined, file: string, config: Awaited<ReturnType<typeof kubeconfigOf>>): string {
  if (!bytes?.length) return writeYaml(config as unknown as Json)
  const document = parseDocument(new TextDecoder().decode(bytes))
  if (document.errors.length || !isMap(document.contents))
    throw new Error(`${file} is not a kubeconfig; the file was not changed`)
  for (const list of ['clusters', 'users', 'contexts'] as const)
    for (const entry of config[list]) upsert(document, list, entry, file)
  document.set('current-context', config['current-context'])
  return document.toString({ lineWidth: 0 })
}

function upsert(document: Document, list: string, entry: Named, file: string): void {
  const found = document.get(list)
  if (found === undefined || found === null) {
    document.set(list, document.createNode([entry]))
    return
  }
  if (!isSeq(found)) throw new Error(`${file}: ${list} is not a list; the file was not changed`)
  const at = found.items.findIndex(item => isMap(item) && item.get('name') === entry.name)
  if (at === -1) found.add(document.createNode(entry))
  else found.set(at, document.createNode(entry))
}

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
