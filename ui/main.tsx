/* @refresh reload */
import { render } from 'solid-js/web'
import { App } from './app.tsx'
import './design/tokens.css'
import './design/base.css'

render(() => <App />, document.getElementById('app') as HTMLElement)
