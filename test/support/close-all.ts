// Closes several resources in order, even if one of them fails to close.

/** Fails with the first error. Otherwise a failed check in one of them would leave a server open, and the test file would not end. */
export async function closeAll(...closers: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closers)
    try {
      await close()
    } catch (error) {
      failures.push(error)
    }
  if (failures.length) throw failures[0]
}
