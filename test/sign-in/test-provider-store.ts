// Storage for the test provider that outlives a change of its configuration. The one of oidc-provider forgets entries beyond 1000.

type Payload = { readonly [field: string]: unknown } & {
  grantId?: string
  uid?: string
  userCode?: string
  consumed?: number
}

/**
 * Returns the adapter class that oidc-provider expects. `leeway`: seconds in which a used refresh token is accepted again, as providers do
 * for clients that lost the answer.
 */
export function openProviderStore(leeway: () => number) {
  const entries = new Map<string, Payload>()
  return class Adapter {
    readonly model: string
    constructor(model: string) {
      this.model = model
    }
    #key(id: string) {
      return `${this.model}:${id}`
    }
    async upsert(id: string, payload: Payload) {
      entries.set(this.#key(id), payload)
    }
    async find(id: string) {
      const payload = entries.get(this.#key(id))
      if (payload?.consumed === undefined || Date.now() / 1000 - payload.consumed > leeway()) return payload
      const { consumed: _, ...unused } = payload
      return unused
    }
    #findBy(field: 'uid' | 'userCode', value: string) {
      const mine = [...entries].filter(([key]) => key.startsWith(`${this.model}:`))
      return mine.find(([, payload]) => payload[field] === value)?.[1]
    }
    async findByUid(uid: string) {
      return this.#findBy('uid', uid)
    }
    async findByUserCode(code: string) {
      return this.#findBy('userCode', code)
    }
    async destroy(id: string) {
      entries.delete(this.#key(id))
    }
    async revokeByGrantId(grantId: string) {
      for (const [key, payload] of entries) if (payload.grantId === grantId) entries.delete(key)
    }
    async consume(id: string) {
      const payload = entries.get(this.#key(id))
      if (payload) payload.consumed = Math.floor(Date.now() / 1000)
    }
  }
}
