// `platform kubeconfig`, `platform credential` and `platform kubectl`: kubectl on the current context, with no key in any kubeconfig.

import { type Document, isMap, isSeq, parseDocument } from 'yaml'
import { writeYaml } from '../../api/encode.ts'
import type { Json } from '../../api/object.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { contextFlag } from '../flags.ts'
import { passingFile } from '../paths.ts'
import { checkServer, namespaceIn, openSession, withoutKey } from '../session.ts'
import { type Context, contextNamed, readContexts } from './contexts.ts'

type Named = { readonly name: string; readonly [field: string]: Json }

/** The user is a program that is asked for the key when it is needed. */
async function kubeconfigOf(io: Io, context: string | undefined) {
  if (io.env['PLATFORM_ACCESS_KEY'] !== undefined)
    throw new UsageError([
      'a kubeconfig is made of a context, and PLATFORM_ACCESS_KEY is none: platform login URL signs in with it, or unset it',
    ])
  const all = await readContexts(io)
  const name = contextNamed(all, context)
  const found = all.contexts[name] as Context
  checkServer(io, { name, server: found.server, asked: context })
  if (found.server.startsWith('http:'))
    throw new UsageError([
      `kubectl sends keys over TLS only, and the context "${name}" is for ${found.server}: sign in to its https address`,
    ])
  // By its whole path: kubectl may be run where the PATH is another, as it is outside of npx.
  const installed = await io.files.find('platform')
  const [command = '', ...first] = installed && !installed.includes('/node_modules/.bin/') ? [installed] : io.program
  const entry = `platform-${name}`
  const ca = found.ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(found.ca).toString('base64') }
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command,
    args: [...first, 'credential', '--context', name],
    interactiveMode: 'Never',
    installHint: 'platform is needed to sign in; it is not on the PATH',
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
  what: 'Print a kubeconfig for the current context; it asks platform for the key, so that no key is in it.',
  examples: [
    { what: 'Use it with kubectl', command: 'platform kubeconfig > platform.kubeconfig' },
    { what: 'Put it beside your other clusters', command: 'platform kubeconfig --merge' },
  ],
  flags: {
    ...contextFlag,
    merge: {
      type: 'switch',
      what: 'Merge it into the kubeconfig that kubectl reads, and make it the current context there.',
    },
  },
  run: async ({ flags }, io) => {
    const config = await kubeconfigOf(io, flags.context)
    if (!flags.merge) io.out(writeYaml(config as unknown as Json))
    else {
      const file = kubectlsFile(io.env)
      await io.files.locked(file, async () => {
        await io.files.write(file, merged(await io.files.read(file), file, config))
      })
      io.err(`The context ${config['current-context']} is in ${file}.\n`)
    }
    return 0
  },
})

/** The one that kubectl writes to. */
function kubectlsFile({ KUBECONFIG: files = '', HOME: home }: Io['env']): string {
  const first = files.split(':').find(Boolean)
  if (first === undefined && !home)
    throw new UsageError(['neither HOME nor KUBECONFIG is set: there is no place for a kubeconfig'])
  return first ?? `${home}/.kube/config`
}

/** Comments and everything of others stay as they are. Throws where the file is none that could be merged into. */
function merged(bytes: Uint8Array | undefined, file: string, config: Awaited<ReturnType<typeof kubeconfigOf>>): string {
  if (!bytes?.length) return writeYaml(config as unknown as Json)
  const document = parseDocument(new TextDecoder().decode(bytes))
  if (document.errors.length || !isMap(document.contents))
    throw new Error(`${file} is no kubeconfig; it was left as it is`)
  for (const list of ['clusters', 'users', 'contexts'] as const)
    for (const entry of config[list]) put(document, list, entry, file)
  document.set('current-context', config['current-context'])
  return document.toString({ lineWidth: 0 })
}

function put(document: Document, list: string, entry: Named, file: string): void {
  const found = document.get(list)
  if (found === undefined || found === null) {
    document.set(list, document.createNode([entry]))
    return
  }
  if (!isSeq(found)) throw new Error(`${file}: ${list} is no list; the file was left as it is`)
  const at = found.items.findIndex(item => isMap(item) && item.get('name') === entry.name)
  if (at === -1) found.add(document.createNode(entry))
  else found.set(at, document.createNode(entry))
}

export const credential = defineCommand({
  words: ['credential'],
  what: 'Print the key for kubectl and its kin (client.authentication.k8s.io); they run it.',
  examples: [
    { what: 'What a kubeconfig of `platform kubeconfig` runs', command: 'platform credential --context NAME' },
  ],
  flags: contextFlag,
  run: async ({ flags }, io) => {
    if (io.isTerminal) throw new UsageError(['this prints the key: it is for programs, not for a terminal'])
    // The kubeconfig that runs it says whose key is meant.
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
  what: 'Run kubectl on the current context; everything behind the word is kubectl’s.',
  examples: [{ what: 'Anything that platform has no command for', command: 'platform kubectl explain team.spec' }],
  flags: {},
  ownFlags: true,
  run: async ({ args }, io) => {
    const program = await io.files.find('kubectl')
    if (!program)
      throw new Error('kubectl is not installed, or not on the PATH: https://kubernetes.io/docs/tasks/tools/ tells how')
    const file = passingFile(io.env, `kubectl-${Buffer.from(io.random(6)).toString('hex')}.kubeconfig`)
    await io.files.write(file, writeYaml((await kubeconfigOf(io, io.env['PLATFORM_CONTEXT'])) as unknown as Json))
    try {
      return await io.start([program, ...args], { env: { ...io.env, KUBECONFIG: file } }).ended
    } finally {
      await io.files.remove(file)
    }
  },
})
