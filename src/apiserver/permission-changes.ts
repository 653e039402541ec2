// Tells the request pipeline and the controllers that somebody's rights may have changed.

/** Tells whoever follows that somebody's rights may have changed: once for all that changes together. */
export function openRights() {
  const followers = new Set<() => void>()
  let told = true
  return {
    changed: () => {
      if (!told) return
      told = false
      setImmediate(() => {
        told = true
        for (const follower of followers) follower()
      })
    },
    follow: (callback: () => void) => {
      followers.add(callback)
      return () => void followers.delete(callback)
    },
  }
}
