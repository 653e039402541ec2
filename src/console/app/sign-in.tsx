// Sign-in: the providers of the server, and a pasted access key.

import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { readSignInOptions, signInWithKey } from '../data/server.ts'
import { text } from '../text/common.ts'
import { Button } from '../ui/button.tsx'
import { Logo } from '../ui/logo.tsx'
import { Loading, problemOf } from '../ui/parts.tsx'
import style from './sign-in.module.css'

type SignInProps = {
  readonly onSignedIn: () => void
  readonly urlOf: (provider: string) => string
  /** Keeps the page: the provider opens in another window. */
  readonly isInPlace?: boolean
}

export function SignInPage(props: SignInProps) {
  return (
    <main className={style.page}>
      <div className={style.box}>
        <Logo />
        <div>
          <h1>{text.signInTitle}</h1>
          <p>{text.signInAdvice}</p>
        </div>
        <SignIn {...props} />
      </div>
    </main>
  )
}

export function SignIn({ onSignedIn, urlOf, isInPlace = false }: SignInProps) {
  const { data, isPending, error } = useQuery({ queryKey: ['providers'], queryFn: readSignInOptions })
  const [isWaiting, setWaiting] = useState(false)
  const start = (provider: string) => {
    if (!isInPlace) return location.assign(urlOf(provider))
    window.open(urlOf(provider), '_blank', 'popup,width=520,height=720')
    setWaiting(true)
  }
  if (isPending) return <Loading />
  if (error) return <p className={style.error}>{problemOf(error).message}</p>
  const { providers, pastedKeys } = data
  return (
    <div className={style.options}>
      {providers.map(({ name, displayName }) => (
        <Button key={name} look="primary" onPress={() => start(name)}>
          {text.signInWith(displayName)}
        </Button>
      ))}
      {isWaiting && <p role="status">{text.waitingForSignIn}</p>}
      {providers.length > 0 && pastedKeys && <hr />}
      {pastedKeys && <KeyForm onSignedIn={onSignedIn} isMain={providers.length === 0} />}
      {providers.length === 0 && !pastedKeys && <p>{text.noSignIn}</p>}
    </div>
  )
}

function KeyForm({ onSignedIn, isMain }: { onSignedIn: () => void; isMain: boolean }) {
  const [problem, setProblem] = useState('')
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const key = String(new FormData(form).get('key') ?? '').trim()
    try {
      await signInWithKey(key)
      form.reset()
      onSignedIn()
    } catch (error) {
      setProblem(problemOf(error).message)
    }
  }
  return (
    <form className={style.options} onSubmit={event => void submit(event)}>
      <div className={style.field}>
        <label htmlFor="key">{text.accessKey}</label>
        <input
          id="key"
          name="key"
          type="password"
          autoComplete="off"
          required
          maxLength={3000}
          aria-describedby="key-problem"
        />
      </div>
      <p id="key-problem" role="alert" className={style.error}>
        {problem}
      </p>
      <Button type="submit" look={isMain ? 'primary' : 'plain'}>
        {text.signInWithKey}
      </Button>
    </form>
  )
}
