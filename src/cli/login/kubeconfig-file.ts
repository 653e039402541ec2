// The kubeconfig of kubectl: where it is, and how an entry is merged into it.

import { type Document, isMap, isSeq, parseDocument } from 'yaml'
import { writeYaml } from '../../api/encode.ts'
import type { Json } from '../../api/object.ts'
import { type Io, UsageError } from '../../host/command.ts'

export type Named = { readonly name: string; readonly [field: string]: Json }

export type Kubeconfig = {
  readonly apiVersion: 'v1'
  readonly kind: 'Config'
  readonly clusters: readonly Named[]
  readonly users: readonly Named[]
  readonly contexts: readonly Named[]
  readonly 'current-context': string
}

/** The file that kubectl writes to. */
export function kubeconfigPath({ KUBECONFIG: files = '', HOME: home }: Io['env']): string {
  const first = files.split(':').find(Boolean)
  if (first === undefined && !home) throw new UsageError(['cannot find the kubeconfig: set HOME or KUBECONFIG'])
  return first ?? `${home}/.kube/config`
}

/** Keeps comments and other entries. Throws if the file is not a kubeconfig. */
export function merged(bytes: Uint8Array | undefined, file: string, config: Kubeconfig): string {
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
