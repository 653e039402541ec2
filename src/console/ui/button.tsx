// Buttons. An action that is forbidden stays visible, and says why.

import { Link } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import {
  Dialog,
  DialogTrigger,
  Popover,
  Button as RawButton,
  type ButtonProps as RawProps,
} from 'react-aria-components'
import { type Action, attributesOf, usePermission } from '../data/permission.ts'
import { text } from '../text/common.ts'
import style from './button.module.css'

type Look = 'plain' | 'primary' | 'danger' | 'quiet'

const classOf = (look: Look) => `${style.button} ${look === 'plain' ? '' : style[look]}`

type ButtonProps = Omit<RawProps, 'className' | 'style' | 'onPress'> & {
  readonly look?: Look
  /** While a promise of it is pending, the button ignores presses, so nothing is sent twice. */
  readonly onPress?: () => unknown
}

export function Button({ look = 'plain', onPress, ...props }: ButtonProps) {
  const isBusy = useRef(false)
  const [isShownBusy, setShownBusy] = useState(false)
  const set = (busy: boolean) => {
    isBusy.current = busy
    setShownBusy(busy)
  }
  const press = () => {
    if (isBusy.current) return
    const done = onPress?.()
    if (!(done instanceof Promise)) return
    set(true)
    void done.finally(() => set(false))
  }
  return <RawButton {...props} className={classOf(look)} data-busy={isShownBusy || undefined} onPress={press} />
}

export const LinkButton = ({ look = 'plain', to, children }: { look?: Look; to: string; children: ReactNode }) => (
  <Link to={to} className={classOf(look)}>
    {children}
  </Link>
)

type ActionButtonProps = ButtonProps & {
  /** The request that the button sends. */
  readonly action: Action
}

/** Enabled unless the server says no. Then a press shows what is missing. */
export function ActionButton({ action, look = 'plain', children, ...props }: ActionButtonProps) {
  const permission = usePermission(action)
  if (permission.answer !== 'no')
    return (
      <Button {...props} look={look}>
        {children}
      </Button>
    )
  return (
    <DialogTrigger>
      <RawButton className={classOf(look)} aria-disabled="true">
        {children}
      </RawButton>
      <Popover placement="bottom end">
        <Dialog className={style.why ?? ''} aria-label={text.needs(permission.needs)}>
          <Denial {...permission} />
          <Link to="/access/why" search={{ ...attributesOf(action) }}>
            {text.explain}
          </Link>
        </Dialog>
      </Popover>
    </DialogTrigger>
  )
}

export function Denial({
  needs,
  reason,
  nearMisses,
}: {
  needs: string
  reason: string
  nearMisses: readonly string[]
}) {
  return (
    <>
      <strong>{text.needs(needs)}</strong>
      {reason && <span>{reason}</span>}
      {nearMisses.length > 0 && (
        <ul>
          {nearMisses.slice(0, 4).map(one => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
    </>
  )
}
