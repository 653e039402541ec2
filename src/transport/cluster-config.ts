// Defines how to reach a cluster: address, trusted CA and credentials. kubeconfig.ts and in-cluster.ts create it.

/** PEM, as text or in a file that is reloaded when it changes. */
export type Material = { readonly text: string } | { readonly file: string }

/** A program that prints credentials (client.authentication.k8s.io). */
export type ExecPlugin = {
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  readonly installHint: string
  readonly provideClusterInfo: boolean
}

export type Access = {
  /** URL without a trailing slash; may have a path. */
  readonly server: string
  /** The namespace of the context; default `default`. */
  readonly namespace: string
  readonly ca?: Material
  /** Skips verification of the server's certificate. */
  readonly insecure: boolean
  readonly serverName?: string
  readonly proxy?: string
  readonly certificate?: Material
  readonly key?: Material
  readonly token?: string
  /** Reloaded every minute. */
  readonly tokenFile?: string
  readonly username?: string
  readonly password?: string
  readonly exec?: ExecPlugin
}
