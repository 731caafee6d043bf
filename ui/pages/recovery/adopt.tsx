/**
 * Adopts a quarantined attempt as a task. The owner is the one entered here; the owner that the node states
 * is only a hint.
 */
import { createSignal, createUniqueId, Show, type JSX } from 'solid-js'
import { ActionButton } from '../../design/action-button.tsx'
import { ConfirmDialog } from '../../design/confirm-dialog.tsx'
import { attemptName } from '../../format/recovery.ts'
import { useSettle, type SettleProps } from './settle.ts'

export function Adopt(props: SettleProps): JSX.Element {
  const settle = useSettle()
  const hint = createUniqueId()
  const [isOpen, setOpen] = createSignal(false)
  const [owner, setOwner] = createSignal('')
  const [isOwnerless, setOwnerless] = createSignal(false)
  const [name, setName] = createSignal('')
  const open = (): void => {
    setOwner('')
    setOwnerless(false)
    setName(attemptName(props.attempt))
    setOpen(true)
  }
  const confirmed = (): string | null => (isOwnerless() ? null : owner().trim())
  const whyNot = (): string | null => {
    if (confirmed() === '') return 'Enter the owner, or select “No owner”.'
    return name().trim() === '' ? 'Enter a name for the task.' : null
  }
  const adopt = async (): Promise<void> => {
    const [by, called] = [confirmed(), name().trim()]
    await settle(props.attempt, 'adopt', { owner: by, name: called })
    props.onSettled(`Adopted ${called}, owner: ${by ?? 'none'}.`)
  }
  return (
    <>
      <ActionButton whyNot={props.whyNot} onClick={open}>
        Adopt…
      </ActionButton>
      <ConfirmDialog
        isOpen={isOpen()}
        onClose={() => setOpen(false)}
        title={`Adopt ${attemptName(props.attempt)} on ${props.attempt.node_name}?`}
        confirm="Adopt"
        whyNot={whyNot()}
        run={adopt}
      >
        <p>
          The attempt becomes a task and keeps running on its node. Confirm the owner, because the task counts
          against the limits of that owner.
        </p>
        <p>
          <label>
            Owner{' '}
            <input
              maxLength="200"
              value={owner()}
              disabled={isOwnerless()}
              aria-describedby={hint}
              onInput={(event) => setOwner(event.currentTarget.value)}
            />
          </label>{' '}
          <label>
            <input
              type="checkbox"
              checked={isOwnerless()}
              onChange={(event) => setOwnerless(event.currentTarget.checked)}
            />{' '}
            No owner
          </label>
        </p>
        <p id={hint} class="quiet text">
          <Show when={props.attempt.record?.owner} fallback={`${props.attempt.node_name} reported no owner.`}>
            {(stated) =>
              `${props.attempt.node_name} reported ${stated()} as the owner. This is not verified.`
            }
          </Show>
        </p>
        <p>
          <label>
            Task name{' '}
            <input maxLength="200" value={name()} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        </p>
      </ConfirmDialog>
    </>
  )
}
