# A listener for the small program: "PATH UID full|open". It is that user's; full: nothing more can connect to it.
# Says "ready", and then whatever anybody sends it.
use Socket; use Fcntl;
my ($path, $uid, $kind) = @ARGV;
$> = $uid if $uid;
socket(my $listener, AF_UNIX, SOCK_STREAM, 0) or die $!;
bind($listener, sockaddr_un($path)) and listen($listener, 0) or die $!;
my @waiting;
while ($kind eq "full") {
  socket(my $one, AF_UNIX, SOCK_STREAM, 0) or die $!;
  fcntl($one, F_SETFL, O_NONBLOCK);
  push @waiting, $one;
  last unless connect($one, sockaddr_un($path));
}
$| = 1;
print "ready\n";
sleep 60 if $kind eq "full";
accept(my $caller, $listener) or die $!;
print "connected\n";
while (sysread($caller, my $bytes, 65536)) { print "heard " . length($bytes) . "\n"; }
print "ended\n";
