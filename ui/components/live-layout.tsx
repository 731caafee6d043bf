import type { JSX } from 'solid-js'
import { ClusterProvider } from '../state/cluster.tsx'
import { Shell } from './shell.tsx'

/** The live cluster around its pages. */
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
