// Defines how to reach a cluster: address, trusted CA and credentials. kubeconfig.ts and in-cluster.ts create it.

/** PEM, as it is or in a file that is read again when it changes. */
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
  /** URL without a slash at the end; may have a path. */
  readonly server: string
  /** The context's own; `default` where it names none. */
  readonly namespace: string
  readonly ca?: Material
  /** The server's certificate is not looked at. */
  readonly insecure: boolean
  readonly serverName?: string
  readonly proxy?: string
  readonly certificate?: Material
  readonly key?: Material
  readonly token?: string
  /** Read again every minute. */
  readonly tokenFile?: string
  readonly username?: string
  readonly password?: string
  readonly exec?: ExecPlugin
}
