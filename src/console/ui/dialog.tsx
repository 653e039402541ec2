// Dialogs over the page.

import type { ReactNode } from 'react'
import { Dialog, Heading, ModalOverlay, Modal as RawModal } from 'react-aria-components'
import style from './dialog.module.css'

type ModalProps = {
  readonly title: string
  readonly isOpen: boolean
  /** Absent: only the content closes it. */
  readonly onClose?: () => void
  readonly isWide?: boolean
  readonly children: ReactNode
}

export function Modal({ title, isOpen, onClose, isWide = false, children }: ModalProps) {
  return (
    <ModalOverlay
      className={style.overlay ?? ''}
      isOpen={isOpen}
      onOpenChange={isNow => !isNow && onClose?.()}
      isDismissable={onClose !== undefined}
      isKeyboardDismissDisabled={onClose === undefined}
    >
      <RawModal className={`${style.modal} ${isWide ? style.wide : ''}`}>
        <Dialog className={style.dialog ?? ''}>
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </Dialog>
      </RawModal>
    </ModalOverlay>
  )
}

export const DialogButtons = ({ children }: { children: ReactNode }) => <div className={style.buttons}>{children}</div>
