// Notifies the request pipeline and the controllers about changed permissions.

/** Notifies listeners that permissions may have changed, once for several concurrent changes. */
export function openPermissionChanges() {
  const followers = new Set<() => void>()
  let isIdle = true
  return {
    changed: () => {
      if (!isIdle) return
      isIdle = false
      setImmediate(() => {
        isIdle = true
        for (const follower of followers) follower()
      })
    },
    follow: (callback: () => void) => {
      followers.add(callback)
      return () => void followers.delete(callback)
    },
  }
}
