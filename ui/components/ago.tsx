/** The time since an instant, with the instant as its title. */
import type { JSX } from 'solid-js'
import { clockTime } from '../format/clock.ts'
import { seconds, secondsSince, UNKNOWN } from '../format/figures.ts'
import { useCluster } from '../state/cluster.tsx'

export interface SinceProps {
  readonly at: string | null
}

/** `12 s`; a dash if the instant is unknown. */
export function Since(props: SinceProps): JSX.Element {
  const { now } = useCluster()
  return (
    <time
      datetime={props.at ?? undefined}
      title={props.at === null ? undefined : `Since ${clockTime(props.at)}`}
    >
      {seconds(secondsSince(props.at, now()))}
    </time>
  )
}

/** `12 s ago`. */
export function Ago(props: SinceProps): JSX.Element {
  const { now } = useCluster()
  return (
    <time datetime={props.at ?? undefined} title={props.at === null ? undefined : clockTime(props.at)}>
      {props.at === null ? UNKNOWN : `${seconds(secondsSince(props.at, now()))} ago`}
    </time>
  )
}
