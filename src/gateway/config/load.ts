// Loads a gateway.yaml and the kubeconfigs that it names, and reloads them when they change.

import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../../host/command.ts'
import { fileProblem, unreadable } from '../../host/fs-errors.ts'
import type { Access } from '../../transport/cluster-config.ts'
import { type Dial, openDial } from '../../transport/dial.ts'
import { inClusterAccess } from '../../transport/in-cluster.ts'
import { KubeconfigError, readKubeconfig } from '../../transport/kubeconfig.ts'
import type { Setup } from '../gateway.ts'
import type { Found } from '../proxy/backend.ts'
import { describeTarget, type Route } from '../proxy/routes.ts'
import { loadGatewayConfig } from './config.ts'
import type { GatewayConfig, ReachedBy } from './schema.ts'

export type LoadedSetup = {
  readonly config: GatewayConfig
  readonly setup: Setup
  /** The file and all files that it names, to detect changes. */
  readonly files: readonly string[]
  /** The access to clusters and virtual clusters, by their description. */
  readonly accesses: ReadonlyMap<string, Access>
  /** Activates this setup. Connections to clusters that it does not have are closed. */
  use(): void
}

type Environment = { readonly env: { readonly [name: string]: string | undefined }; readonly now: () => number }

export interface SetupLoader {
  /** Throws UsageError with all problems. Unchanged clusters keep their connections. */
  load(): LoadedSetup
  /** The file and the files that it names, valid or not. */
  files(): readonly string[]
}

/** `alone`: for `platform gateway`; otherwise for `platform serve`. */
export function openSetupLoader(file: string, alone: boolean, environment: Environment): SetupLoader {
  let dials = new Map<string, Dial>()
  const filesOf = (config: GatewayConfig) => [file, ...namedIn(config).map(one => resolve(dirname(file), one))]
  return {
    files() {
      try {
        return filesOf(loadGatewayConfig(readFileSync(file), alone).config)
      } catch {
        return [file]
      }
    },
    load() {
      const { config, problems } = loadGatewayConfig(read(file), alone)
      const opened = open(config, { file, environment, before: dials })
      const texts = problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`)
      if (texts.length + opened.problems.length) throw new UsageError([...texts, ...opened.problems])
      const use = () => {
        for (const [stamp, dial] of dials) if (!opened.dials.has(stamp)) dial.retire()
        dials = opened.dials
      }
      const { found, accesses } = opened
      return { config, setup: setupOf(config, found), files: filesOf(config), accesses, use }
    },
  }
}

/** The setup of a gateway without a file: no targets, and the default timeouts. */
export const emptySetup = (): Setup => setupOf({}, new Map())

/** The content of a file that is watched for changes. */
function namedIn({
  clusters = [],
  virtualClusters = [],
  tls = {},
  issuer = {},
  service = {},
  audit = {},
}: GatewayConfig) {
  const own = tls.directory ? [join(tls.directory, 'ca.crt'), join(tls.directory, 'ca.key')] : []
  const kubeconfigs = [...clusters, ...virtualClusters].map(one => one.kubeconfig)
  const others = [tls.certificate, tls.key, ...own, issuer.ca, service.ca, audit.policy, audit.salt]
  return [...kubeconfigs, ...others].filter(one => one !== undefined)
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Problems in the rest are still reported. */
const nameless = '(unnamed)'

type Opened = {
  readonly found: ReadonlyMap<string, Found>
  readonly dials: Map<string, Dial>
  readonly accesses: ReadonlyMap<string, Access>
  readonly problems: readonly string[]
}
type Opening = { readonly file: string; readonly environment: Environment; readonly before: ReadonlyMap<string, Dial> }

function open(config: GatewayConfig, { file, environment, before }: Opening): Opened {
  const problems: string[] = []
  const found = new Map<string, Found>()
  const dials = new Map<string, Dial>()
  const accesses = new Map<string, Access>()
  const put = (target: Route['target'], reached: ReachedBy) => {
    const name = describeTarget(target)
    if (!reached.kubeconfig && !reached.inCluster) return // reported already
    try {
      const access = accessOf(reached, file, environment)
      accesses.set(name, access)
      const stamp = JSON.stringify(access)
      const dial = dials.get(stamp) ?? before.get(stamp) ?? openDial(access, environment)
      dials.set(stamp, dial)
      found.set(name, { backend: { ...dial, name } })
    } catch (error) {
      const texts = error instanceof KubeconfigError ? error.problems : [(error as Error).message]
      problems.push(...texts.map(text => `${file}: ${name}: ${text}`))
    }
  }
  for (const { name = nameless, ...reached } of config.clusters ?? [])
    put({ target: 'Cluster', cluster: name }, reached)
  for (const { name = nameless, project = nameless, ...reached } of config.virtualClusters ?? [])
    put({ target: 'ProjectVirtualCluster', project, virtualCluster: name }, reached)
  for (const { name = '', project = '', cluster = '', namespace = '' } of config.spaces ?? []) {
    const there = found.get(describeTarget({ target: 'Cluster', cluster }))
    if (there) found.set(describeTarget({ target: 'ProjectSpace', project, space: name }), { ...there, namespace })
  }
  return { found, dials, accesses, problems }
}

function accessOf({ kubeconfig, context }: ReachedBy, file: string, { env }: Environment): Access {
  if (!kubeconfig) return inClusterAccess({ env, readText })
  const path = resolve(dirname(file), kubeconfig)
  return readKubeconfig(bytesOf(path), { file: path, directory: dirname(path), context })
}

function bytesOf(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new Error(fileProblem(path, error))
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function setupOf({ identity, timeouts }: GatewayConfig, found: ReadonlyMap<string, Found>): Setup {
  return {
    find: target => found.get(describeTarget(target)),
    prefixes: { userPrefix: identity?.userPrefix ?? '', groupPrefix: identity?.groupPrefix ?? '' },
    timeouts: {
      connect: millisecondsOf(timeouts?.connect ?? 10),
      answer: millisecondsOf(timeouts?.answer ?? 75),
      take: millisecondsOf(timeouts?.take ?? 60),
    },
  }
}

/** Node runs a timer with a larger delay at once. */
const millisecondsOf = (seconds: number) => Math.min(seconds * 1000, 2 ** 31 - 1)
