// A new secret, which the server shows once: copy, download, and a confirmation before it is gone.

import { useState } from 'react'
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
    <Modal title={`The key of ${name}`} isOpen>
      <Note tone="warn">The server does not show this key again. Store it now.</Note>
      <div className={style.secret} data-testid="secret">
        {secret}
      </div>
      <p>
        It works at <code>{server}</code>, as a bearer token or with <code>platform login</code>.
      </p>
      <DialogButtons>
        <CopyButton value={secret} />
        <Button onPress={download}>Download</Button>
      </DialogButtons>
      <label>
        <input type="checkbox" checked={isKept} onChange={event => setKept(event.currentTarget.checked)} /> I have
        stored the key
      </label>
      <DialogButtons>
        <Button look="primary" isDisabled={!isKept} onPress={onClose}>
          Done
        </Button>
      </DialogButtons>
    </Modal>
  )
}
