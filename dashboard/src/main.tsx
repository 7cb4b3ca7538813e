/**
 * Starts the page: finds out who looks, and shows it.
 */
import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/parts.css';
import { App } from './app.tsx';
import { startClock } from './clock.ts';
import { startLocation } from './location.ts';
import { openSession } from './session.ts';

startLocation();
startClock();
void openSession();
render(<App />, document.querySelector('#app')!);
