import type { JSX } from 'solid-js'
import { ClusterProvider } from '../state/cluster.tsx'
import { Shell } from './shell.tsx'

/** Layout of the live cluster's pages. */
export function LiveLayout(props: {
  readonly children?: JSX.Element
  readonly isReplay?: boolean
}): JSX.Element {
  return (
    <ClusterProvider>
      <Shell isReplay={props.isReplay}>{props.children}</Shell>
    </ClusterProvider>
  )
}
