// Whether the caller may send a request: yes, no or unknown. The question is derived from the request itself.

import { useQuery } from '@tanstack/react-query'
import type { Kind } from '../../api/kind.ts'
import { AccessExplanation } from '../../kinds/subject-reviews.ts'
import { text } from '../text/common.ts'
import { server } from './server.ts'

export type Action = {
  readonly verb: string
  readonly kind: Pick<Kind, 'group' | 'plural'>
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
}

export type Permission =
  | { readonly answer: 'yes' }
  | { readonly answer: 'unknown' }
  | { readonly answer: 'no'; readonly needs: string; readonly reason: string; readonly nearMisses: readonly string[] }

const unknown: Permission = { answer: 'unknown' }

/** undefined asks nothing. A check that fails or takes long is unknown: then the request itself decides. */
export function usePermission(action: Action | undefined): Permission {
  const { data } = useQuery({
    queryKey: ['permission', action],
    enabled: action !== undefined,
    staleTime: 15_000,
    // Somebody may grant it while the page is open. A lost permission shows when the request is sent.
    refetchInterval: ({ state }) => (state.data?.answer === 'no' ? 30_000 : false),
    queryFn: () => (action ? ask(action) : unknown),
  })
  return data ?? unknown
}

async function ask(action: Action): Promise<Permission> {
  const { status } = await explain(attributesOf(action))
  if (status.allowed) return { answer: 'yes' }
  const { reason = '', nearMisses = [] } = status
  return { answer: 'no', needs: needOf(action), reason, nearMisses }
}

export type Explanation = {
  readonly status: {
    readonly allowed?: boolean
    readonly reason?: string
    readonly steps?: readonly string[]
    readonly nearMisses?: readonly string[]
    readonly who?: readonly string[]
  }
}

export type Attributes = {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

export async function explain(
  resourceAttributes: Attributes,
  more: { readonly user?: string; readonly whoCan?: boolean } = {},
): Promise<Explanation> {
  const { object } = await server.create(AccessExplanation, '', { spec: { resourceAttributes, ...more } })
  return { status: (object.status ?? {}) as Explanation['status'] }
}

export const attributesOf = ({ verb, kind, namespace, name, subresource }: Action): Attributes => ({
  verb,
  group: kind.group,
  resource: kind.plural,
  ...(subresource ? { subresource } : {}),
  ...(namespace ? { namespace } : {}),
  ...(name ? { name } : {}),
})

const needOf = ({ verb, kind, subresource }: Action): string =>
  text.need(verb, `${kind.plural}${subresource ? `/${subresource}` : ''}`)
