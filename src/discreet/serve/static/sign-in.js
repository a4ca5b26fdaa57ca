// A token may come behind the # of an address, which browsers keep to themselves; it does not stay there.

function take() {
  const token = location.hash.slice(1);
  if (!token.startsWith("discreet_")) return;
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = token;
  document.getElementById("sign-in").requestSubmit();
}

// What the last one asked is not for the next.
sessionStorage.clear();
// Who pastes the address into the tab that shows this form loads nothing anew.
addEventListener("hashchange", take);
take();
