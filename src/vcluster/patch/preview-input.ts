// Checks the input of a preview: the object, the patches and the configuration, with the position of each error.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { parseKind } from '../config/reference-kinds.ts'
import { objectProblem } from '../sync/validate-endpoints.ts'
import { checkPatches } from './patch.ts'
import { syncedKindOf } from './preview.ts'

/** `otherwise`: another way to set the namespace, for the message. */
export function inputProblem(value: Json, otherwise = ''): string | undefined {
  if (!isObject(value)) return 'expected one object'
  const found = `${value['apiVersion']}/${value['kind']}`
  if (found !== 'v1/Endpoints' && found !== 'discovery.k8s.io/v1/EndpointSlice')
    return 'expected apiVersion: v1 and kind: Endpoints, or apiVersion: discovery.k8s.io/v1 and kind: EndpointSlice; the syncer handles no other kind'
  const metadata = value['metadata']
  if (!isObject(metadata) || typeof metadata['name'] !== 'string' || typeof metadata['namespace'] !== 'string')
    return `metadata.name and metadata.namespace are required: the name on the other side derives from them${otherwise}`
  return objectProblem(value)
}

/** An error that is found without running anything. Line and column count from 1 in the text of the field. */
export type StaticProblem = {
  readonly patch?: number
  readonly field: string
  readonly message: string
  readonly line?: number
  readonly column?: number
}

export function patchProblems(patches: readonly Json[]): StaticProblem[] {
  return checkPatches(patches).map(({ at: [index, ...keys], offset, message }) => {
    const [key] = keys
    const own = typeof index === 'number' ? patches[index] : undefined
    const text = isObject(own) && typeof key === 'string' ? own[key] : undefined
    return {
      ...(typeof index === 'number' ? { patch: index } : {}),
      field: keys.join('.'),
      message,
      ...(typeof text === 'string' && keys.length === 1 ? positionOf(text, offset ?? 0) : {}),
    }
  })
}

function positionOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 }
}

type Given = {
  readonly object: JsonObject
  readonly config: JsonObject | undefined
  /** They replace those of the configuration. */
  readonly patches: readonly Json[] | undefined
  readonly syncReferences: readonly string[]
}

/** The configuration with defaults, for this kind of object. */
export function previewConfig({ object, config, patches, syncReferences }: Given): {
  readonly config: Config
  readonly problems: readonly StaticProblem[]
} {
  const { setting } = syncedKindOf(object)
  const set = patches === undefined ? {} : { patches: patches as Json }
  // Without a configuration, the preview is about the patches alone.
  const own = config === undefined ? { ...set, enabled: true } : set
  const whole = Object.keys(own).length ? withSetting(config ?? {}, setting, own) : (config ?? {})
  const loaded = loadConfig(new TextEncoder().encode(JSON.stringify(whole)), {
    noPatchesReason: undefined,
    syncReferences: syncReferences.flatMap(kind => parseKind(kind) ?? []),
  })
  return {
    config: loaded.config,
    problems: loaded.problems.map(({ message }) => ({ field: 'config', message })),
  }
}

function withSetting(config: JsonObject, setting: string, own: JsonObject): JsonObject {
  const below = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})
  const sync = below(config['sync'])
  const toHost = below(sync['toHost'])
  const changed = { ...below(toHost[setting]), ...own }
  return { ...config, sync: { ...sync, toHost: { ...toHost, [setting]: changed } } }
}
