// Opens the way into a cluster that a command names: a kubeconfig, or the service account of the pod it runs in.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Resources } from '../api/resources.ts'
import { type Io, UsageError } from '../cli/command.ts'
import { connect } from '../client/connect.ts'
import type { Access } from '../kubeconfig/access.ts'
import { inClusterAccess } from '../kubeconfig/in-cluster.ts'
import { KubeconfigError, readKubeconfig } from '../kubeconfig/kubeconfig.ts'
import { openTransport } from '../kubeconfig/transport.ts'

export type Reached = {
  readonly server: string
  /** Whether its name may be one that only a proxy can look up. */
  readonly isProxied: boolean
  readonly resources: Resources
  close(): void
}

/** `file` absent: the cluster this runs in. Throws UsageError. */
export async function reachCluster(file: string | undefined, context: string | undefined, io: Io): Promise<Reached> {
  const access = await accessOf(file, context, io).catch(error => {
    throw new UsageError(error instanceof KubeconfigError ? error.problems : [(error as Error).message])
  })
  const transport = openTransport(access, { env: io.env, now: io.now })
  const resources = connect({ url: access.server, below: '', fetch: transport.fetch })
  const isProxied =
    Boolean(access.proxy) || Object.entries(io.env).some(([key, url]) => url && /^https?_proxy$/i.test(key))
  return { server: access.server, isProxied, resources, close: transport.close }
}

async function accessOf(file: string | undefined, context: string | undefined, io: Io): Promise<Access> {
  if (file === undefined) return inClusterAccess({ env: io.env, readText })
  return readKubeconfig(await io.readFile(file), { file, directory: dirname(resolve(file)), context })
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
