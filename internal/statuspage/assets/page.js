// Keeps the page up to date, unlocks it with a key, and runs the box that tries one turn.
'use strict';

const stored = 'ocp-key'; // in this tab only, until it is closed
const byId = (id) => document.getElementById(id);
const key = () => sessionStorage.getItem(stored);
const headers = (k) => (k ? { Authorization: 'Bearer ' + k } : {});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// readEvents gives the data of each server-sent event to take.
async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      if (frame.startsWith('data: ')) take(frame.slice(6));
    }
  }
}

// The page's sections come rendered, and escaped, from the server.
function renew(data) {
  const section = JSON.parse(data);
  byId(section.id).innerHTML = section.html;
}

async function follow() {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 30000)) {
    try {
      const response = await fetch('/status/events', { headers: headers(key()) });
      if (response.status === 401) return lock();
      if (response.ok) {
        byId('live').textContent = 'live';
        wait = 1000;
        await readEvents(response, renew);
      }
    } catch { /* the server is gone, and may come back */ }
    byId('live').textContent = 'no connection, trying again';
    await pause(wait);
  }
}

function lock() {
  sessionStorage.removeItem(stored);
  location.reload();
}

// unlock shows the page to a key, or says that it will not do.
async function unlock(k) {
  let next;
  try {
    const response = await fetch('/', { headers: headers(k) });
    next = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('main');
  } catch {
    byId('wrong').textContent = 'The server does not answer.';
    return;
  }
  if (!next || 'locked' in next.dataset) {
    sessionStorage.removeItem(stored);
    byId('wrong').textContent = 'That key is not one that this server knows.';
    return;
  }
  sessionStorage.setItem(stored, k);
  byId('main').replaceWith(next);
  open();
}

function open() {
  prepareTry();
  follow();
}

function prepareTry() {
  const form = byId('try');
  let running = null;
  form.hidden = false;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    running = new AbortController();
    byId('send').disabled = true;
    byId('stop').disabled = false;
    try {
      await tryTurn(running.signal);
    } catch (error) {
      byId('figures').textContent = running.signal.aborted ? 'Stopped.' : 'Failed: ' + error.message;
    }
    byId('send').disabled = false;
    byId('stop').disabled = true;
  });
  byId('stop').addEventListener('click', () => running && running.abort());
}

async function tryTurn(signal) {
  const answer = byId('answer'), figures = byId('figures'), begun = performance.now();
  const after = () => (performance.now() - begun) / 1000;
  let first = 0, pieces = 0, finished = false;
  answer.textContent = '';
  figures.textContent = 'Waiting for the first text.';
  const response = await fetch('/v1/chat/completions', {
    method: 'POST', signal,
    headers: { 'Content-Type': 'application/json', ...headers(byId('try-key').value || key()) },
    body: JSON.stringify({ model: byId('model').value, stream: true, messages: [{ role: 'user', content: byId('prompt').value }] }),
  });
  if (!response.ok) throw new Error((await response.json()).error.message);
  await readEvents(response, (data) => {
    if (data === '[DONE]') return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    const choice = chunk.choices[0];
    if (!choice) return;
    finished = finished || Boolean(choice.finish_reason);
    if (!choice.delta.content) return;
    pieces++;
    first = first || after();
    answer.append(choice.delta.content);
    answer.scrollTop = answer.scrollHeight;
    figures.textContent = `First text after ${first.toFixed(2)} s; ${pieces} pieces so far.`;
  });
  if (!finished) throw new Error('the answer broke off');
  figures.textContent = `First text after ${first.toFixed(2)} s; ${pieces} pieces; whole and checked after ${after().toFixed(2)} s.`;
}

if ('locked' in byId('main').dataset) {
  byId('unlock').addEventListener('submit', (event) => {
    event.preventDefault();
    unlock(byId('key').value);
  });
  if (key()) unlock(key());
} else {
  open();
}
