// Who is signed in. An expired session opens a dialog over the page, so that nothing is lost.

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { dropAllDrafts } from '../data/drafts.ts'
import { announceSession, followSessions } from '../data/hub.ts'
import { listPath, shownKinds } from '../data/places.ts'
import { prepareRows, reloadRows } from '../data/rows.ts'
import {
  basePath,
  bindUser,
  boundUser,
  consoleUrl,
  followExpiry,
  readSession,
  type Session,
  signInUrl,
} from '../data/server.ts'
import { text } from '../text/common.ts'
import { Modal } from '../ui/dialog.tsx'
import { ErrorState, Loading } from '../ui/parts.tsx'
import { SignIn, SignInPage } from './sign-in.tsx'

const SessionContext = createContext<Session | undefined>(undefined)

export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('no session')
  return session
}

/** The page that asked for the sign-in, below /console/. */
const here = () => location.pathname.slice(basePath.length + 1) + location.search

/** Drawing the frame takes as long as reading the first rows, so both begin together. */
function prepareList(): void {
  const kind = shownKinds.find(kind => location.pathname === basePath + listPath(kind))
  if (kind && !location.search) prepareRows(kind)
}

/** After a sign-out, also on another page, nobody finds the drafts. The server left a cookie. Returns whether there was one. */
async function forgetDrafts(): Promise<boolean> {
  if (!/(?:^|; )platform-signed-out=1/.test(document.cookie)) return false
  await dropAllDrafts().catch(() => {})
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser
  document.cookie = 'platform-signed-out=; Path=/; Max-Age=0'
  announceSession('out')
  return true
}

/** The sign-out ends the session before it leads to the page of the provider. A reload in between would prevent that. */
let isLeaving = false

/** Signs out and leads to the page that `signOut` returns. Throws if that fails; the session then continues. */
export async function leave(signOut: () => Promise<string | undefined>): Promise<void> {
  isLeaving = true
  try {
    const atProvider = await signOut()
    await dropAllDrafts().catch(() => {})
    announceSession('out')
    location.assign(atProvider ?? consoleUrl)
  } catch (error) {
    isLeaving = false
    throw error
  }
}

/** Nothing that the last user has read or typed may stay on the page. */
function startAgain(): Promise<never> {
  if (!isLeaving) location.reload()
  return new Promise(() => {})
}

export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['session'],
    queryFn: async () => {
      const session = await readSession()
      const isSignedOut = await forgetDrafts()
      const isOther = session !== undefined && session.user !== boundUser()
      if (boundUser() !== '' && (isSignedOut || isOther)) return await startAgain()
      if (!session) return null
      bindUser(session.user)
      prepareList()
      return session
    },
    staleTime: 60_000,
    refetchOnWindowFocus: 'always',
  })
  const [last, setLast] = useState<Session>()
  useEffect(() => {
    if (data) setLast(data)
  }, [data])
  useEffect(() => followExpiry(() => void refetch()), [refetch])
  useEffect(
    () => followSessions(change => void (change === 'out' && boundUser() !== '' ? startAgain() : refetch())),
    [refetch],
  )
  // Other tabs may belong to a user who was signed in before.
  useEffect(() => {
    if (data?.user) announceSession('in')
  }, [data?.user])

  const signedIn = async () => {
    await refetch()
    announceSession('in')
    reloadRows()
    await client.invalidateQueries()
  }
  if (isPending) return <Loading />
  if (error && !last) return <ErrorState error={error} retry={() => void refetch()} />
  const session = data ?? last
  if (!session) return <SignInPage onSignedIn={() => void signedIn()} urlOf={provider => signInUrl(provider, here())} />
  return (
    <SessionContext value={session}>
      {children}
      {data === null && (
        <Modal title={text.sessionEnded} isOpen>
          <p>{text.sessionEndedAdvice}</p>
          <SignIn onSignedIn={() => void signedIn()} urlOf={provider => signInUrl(provider, 'signed-in')} isInPlace />
        </Modal>
      )}
    </SessionContext>
  )
}

/** The end of a sign-in in another window. */
export function SignedInPage() {
  useEffect(() => {
    announceSession('in')
    window.close()
  }, [])
  return <a href={consoleUrl.href}>{text.backHome}</a>
}
