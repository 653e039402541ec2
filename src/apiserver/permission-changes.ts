// Notifies the request pipeline and the controllers about changed permissions.

/** Notifies listeners that permissions may have changed, once for changes that come together. */
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
