import type { JSX } from 'solid-js'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { attemptName } from '../../format/recovery.ts'
import { useSettle, type SettleProps } from './settle.ts'

export function Stop(props: SettleProps): JSX.Element {
  const settle = useSettle()
  const stop = async (): Promise<void> => {
    const { attempt } = props
    await settle(attempt, 'stop')
    props.onSettled(`Stopping ${attemptName(attempt)} on ${attempt.node_name}.`)
  }
  return (
    <ConfirmedAction
      label="Stop"
      title={`Stop ${attemptName(props.attempt)} on ${props.attempt.node_name}?`}
      confirm="Stop"
      isDanger
      whyNot={props.whyNot}
      run={stop}
    >
      <p>
        The node stops the attempt at its next heartbeat. Unsaved work is lost, and the attempt does not start
        again.
      </p>
    </ConfirmedAction>
  )
}
