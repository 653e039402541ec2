// Reads the in-cluster configuration from the service account of the pod.

import type { Access } from './cluster-config.ts'
import { KubeconfigError } from './kubeconfig.ts'

const mounted = '/var/run/secrets/kubernetes.io/serviceaccount'

type Environment = {
  readonly env: { readonly [name: string]: string | undefined }
  /** undefined: the file does not exist. */
  readonly readText: (file: string) => string | undefined
  readonly directory?: string
}

export const isInCluster = ({ env, readText, directory = mounted }: Environment): boolean =>
  Boolean(env['KUBERNETES_SERVICE_HOST'] && env['KUBERNETES_SERVICE_PORT']) &&
  readText(`${directory}/token`) !== undefined

/** Throws KubeconfigError. */
export function inClusterAccess(world: Environment): Access {
  const { env, readText, directory = mounted } = world
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (!isInCluster(world))
    throw new KubeconfigError([
      `not running in a pod with a service account: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and ${directory}/token are required; pass a kubeconfig instead`,
    ])
  return {
    server: `https://${host?.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: readText(`${directory}/namespace`)?.trim() || 'default',
    ca: { file: `${directory}/ca.crt` },
    insecure: false,
    tokenFile: `${directory}/token`,
  }
}
