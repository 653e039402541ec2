// A new secret, which the server shows once: copy, download, and a confirmation before it is gone.

import { useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { keyText } from '../text/keys.tsx'
import { Button } from '../ui/button.tsx'
import { DialogButtons, Modal } from '../ui/dialog.tsx'
import { CopyButton, Note } from '../ui/parts.tsx'
import style from './shown-once.module.css'

type ShownOnceProps = {
  readonly name: string
  readonly secret: string
  readonly server: string
  readonly onClose: () => void
}

export function ShownOnce({ name, secret, server, onClose }: ShownOnceProps) {
  const [isKept, setKept] = useState(false)
  // Another page, or a reload, would lose the key.
  useBlocker({ shouldBlockFn: () => !isKept, enableBeforeUnload: () => !isKept })
  const download = () => {
    const url = URL.createObjectURL(new Blob([`${secret}\n`], { type: 'text/plain' }))
    const link = document.createElement('a')
    link.href = url
    link.download = `${name}.key`
    link.click()
    URL.revokeObjectURL(url)
    setKept(true)
  }
  return (
    <Modal title={keyText.keyOf(name)} isOpen>
      <Note tone="warn">{keyText.shownOnce}</Note>
      <div className={style.secret} data-testid="secret">
        {secret}
      </div>
      <p>{keyText.worksAt(server)}</p>
      <DialogButtons>
        <CopyButton value={secret} />
        <Button onPress={download}>{keyText.download}</Button>
      </DialogButtons>
      <label>
        <input type="checkbox" checked={isKept} onChange={event => setKept(event.currentTarget.checked)} />{' '}
        {keyText.stored}
      </label>
      <DialogButtons>
        <Button look="primary" isDisabled={!isKept} onPress={onClose}>
          {keyText.done}
        </Button>
      </DialogButtons>
    </Modal>
  )
}
